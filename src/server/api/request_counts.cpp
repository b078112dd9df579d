#include "server/api/request_counts.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

// Clients can send any method.
std::string known_method(const std::string& method) {
  static constexpr const char* kKnown[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};
  return std::find(std::begin(kKnown), std::end(kKnown), method) != std::end(kKnown) ? method : "other";
}

// The server could not take it now.
bool is_refused(const RequestRecord& r) { return r.status == 429 || r.status == 503; }

}  // namespace

void RequestCounts::add(const RequestRecord& r) {
  const std::lock_guard lock(mutex_);
  requests_[{r.route, known_method(r.method), r.status, r.model}]++;
  OfModel& m = models_[r.model];
  if (is_refused(r)) m.refused++;
  else if (r.status >= 500 || r.broke_off) m.failed++;
  if (r.end == "client-left") m.left++;
  if (!r.model.empty()) m.seconds.add(r.seconds);
}

void RequestCounts::write(std::string& out) const {
  const std::lock_guard lock(mutex_);
  describe_metric(out, "gimbal_http_requests_total", "counter",
                  "Requests that have ended, by route, method, status and model.");
  for (const auto& [key, count] : requests_) {
    const auto& [route, method, status, model] = key;
    out += format("gimbal_http_requests_total{{path={},method={},status=\"{}\",model={}}} {}\n",
                  json_text(route), json_text(method), status, json_text(model), count);
  }
  const auto add = [&](const char* name, const char* help, uint64_t OfModel::*member) {
    describe_metric(out, name, "counter", help);
    if (!models_.contains("")) out += format("{}{{model=\"\"}} 0\n", name);
    for (const auto& [model, m] : models_)
      out += format("{}{{model={}}} {}\n", name, json_text(model), m.*member);
  };
  add("gimbal_requests_refused_total",
      "Requests with status 429 or 503: the server could not take them then.", &OfModel::refused);
  add("gimbal_requests_failed_total",
      "Requests with another status of 500 or more, and streams that broke off.", &OfModel::failed);
  add("gimbal_requests_left_total", "Requests whose clients left before the end.", &OfModel::left);
  describe_metric(out, "gimbal_request_seconds", "histogram", "From a request to the end of its answer.");
  for (const auto& [model, m] : models_)
    if (!model.empty())
      add_histogram(out, "gimbal_request_seconds", format("model={}", json_text(model)), m.seconds);
}

void describe_metric(std::string& out, const char* name, const char* type, const char* help) {
  out += format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void add_histogram(std::string& out, const char* name, const std::string& labels, const Durations& d) {
  uint64_t sum = 0;
  for (size_t i = 0; i < d.counts.size(); i++) {
    sum += d.counts[i];
    const std::string bound = i < Durations::kBounds.size() ? format("{}", Durations::kBounds[i]) : "+Inf";
    out += format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, labels.empty() ? "" : ",", bound, sum);
  }
  const std::string in_braces = labels.empty() ? "" : "{" + labels + "}";
  out += format("{0}_sum{1} {2}\n{0}_count{1} {3}\n", name, in_braces, d.sum, sum);
}

}  // namespace gimbal::api
