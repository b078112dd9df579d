// Ollama's keep_alive: how long a model stays loaded after a request, and requests that only load or unload
// one.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "server/api/ollama.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr double kLongest = 1e9;  // seconds; beyond it is for ever

// Go's durations, such as "5m", "1h30m", "-1s" and "500ms"; a number alone is seconds. Nothing: it is
// neither.
std::optional<double> seconds_of(const std::string& text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"h", 3600}, {"ms", 1e-3}, {"m", 60},
                                                                   {"s", 1},    {"us", 1e-6}, {"ns", 1e-9}};
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  double sum = 0;
  for (bool first = true; first || !rest.empty(); first = false) {
    const size_t digits = rest.find_first_not_of("0123456789.");
    const std::string number(rest.substr(0, digits));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || number == "." || *end) return {};
    rest.remove_prefix(number.size());
    if (rest.empty() && first) return negative ? -value : value;
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                    [&](const auto& u) { return rest.starts_with(u.first); });
    if (unit == std::end(kUnits)) return {};
    rest.remove_prefix(unit->first.size());
    sum += value * unit->second;
  }
  return negative ? -sum : sum;
}

}  // namespace

std::optional<double> read_keep_alive(Fields& f) {
  const Json* j = f.any("keep_alive");
  if (!j) return {};
  std::optional<double> seconds;
  if (j->is_number()) seconds = j->get<double>();
  else if (j->is_string()) seconds = seconds_of(j->get<std::string>());
  if (!seconds || !std::isfinite(*seconds)) {
    f.wrong("keep_alive", "'keep_alive' must be a number of seconds or a text such as \"5m\"; -1: for ever");
    return {};
  }
  return *seconds < 0 || *seconds > kLongest ? -1 : *seconds;
}

bool unloads(Call& call, Fields& f, std::optional<double> keep_alive, bool chat, Refused& no) {
  if (f.ok() && keep_alive != 0.0) return false;
  auto name = f.text("model");
  if (auto older = f.text("name"); older && !name) name = older;
  if (!name) f.need("model");
  if ((no = f.error())) return true;
  Models& models = call.services.models;
  if (!models.file(*name)) return no = unknown_model(*name), true;
  models.stay(*name, 0);
  answer_without_text(call, *name, "unload", chat);
  return true;
}

void answer_without_text(Call& call, const std::string& model, const char* reason, bool chat) {
  Json j = {{"model", model}, {"created_at", iso_time(unix_time())}};
  if (chat) j["message"] = {{"role", "assistant"}, {"content", ""}};
  else j["response"] = "";
  j["done"] = true, j["done_reason"] = reason;
  call.answer_json(j);
}

}  // namespace gimbal::api
