#include "discovery/selection.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/bytes.h"
#include "base/format.h"
#include "device/contract.h"
#include "device/reason.h"

namespace gimbal {
namespace {

// A device, or a backend without one, at its place in the order.
struct Candidate {
  std::tuple<bool, bool, int, bool, long, uint64_t, int> place;
  const BackendReport* backend = nullptr;
  const DeviceReport* device = nullptr;
  Rejection no;  // if there is no device
};

// A cached rejection states its age and how to probe again.
Rejection as_remembered(Rejection no, const BackendReport& r) {
  if (r.seen.empty()) return no;
  no.message += format(", seen on {}", r.seen);
  no.seen = r.seen;
  return no;
}

class Chooser {
 public:
  Chooser(std::vector<BackendReport> reports, const SelectionRequest& request)
      : reports_(std::move(reports)), request_(request), order_(full_order(request.order)) {
    mark_duplicates(reports_, order_);
  }

  Result<DeviceChoice> choose() const {
    if (auto wrong = wrong_number(reports_, request_)) return *wrong;
    DeviceChoice choice;
    for (const Candidate& c : ranked()) {
      const bool asked = wanted(*c.backend);
      if (!asked && request_.strict && !automatic()) continue;
      auto no = c.device ? why_not(*c.device, *c.backend, asked) : c.no;
      if (no) {
        choice.rejected.push_back(std::move(*no));
        continue;
      }
      choice.backend = c.backend->backend, choice.index = c.device->index;
      choice.why = asked         ? "asked for"
                   : automatic() ? "first available in the automatic order"
                                 : "the next best in the automatic order";
      if (!automatic() && !asked)
        for (const Rejection& r : choice.rejected)
          if (r.backend() == request_.backend) choice.unwanted.push_back(r);
      return choice;
    }
    return nothing(choice.rejected);
  }

 private:
  bool automatic() const { return request_.backend == "auto"; }
  bool wanted(const BackendReport& r) const { return r.backend == request_.backend; }
  long position(const std::string& backend) const {
    return std::find(order_.begin(), order_.end(), backend) - order_.begin();
  }

  // Backends that are neither requested nor in any order are for tests.
  std::vector<Candidate> ranked() const {
    std::vector<Candidate> all;
    for (const BackendReport& r : reports_) {
      if (!wanted(r) && position(r.backend) == long(order_.size())) continue;
      auto add = [&](const DeviceReport* d, int index, Rejection no) {
        if (wanted(r) && r.available && request_.device && *request_.device != index) return;
        const long at = position(r.backend), cpu = position("cpu");
        const int side = at < cpu ? 0 : at == cpu ? 1 : 2;
        all.push_back({{!wanted(r), d && d->software && request_.allow_software, side, d && d->unified_memory,
                        at, d ? ~d->memory_total : 0, index},
                       &r,
                       d,
                       std::move(no)});
      };
      for (const DeviceReport& d : r.devices) add(&d, d.index, {});
      for (const DeviceRefusal& d : r.refused)
        add(nullptr, d.index, {format("{}:{}", r.backend, d.index), d.reason, d.message, d.remedy});
      if (r.devices.empty() && r.refused.empty())
        add(nullptr, 0, as_remembered({r.backend, r.reason, r.message, r.remedy}, r));
    }
    std::sort(all.begin(), all.end(),
              [](const Candidate& a, const Candidate& b) { return a.place < b.place; });
    return all;
  }

  const Rejection* failed(const std::string& id) const {
    for (const Rejection& r : request_.failed)
      if (r.what == id) return &r;
    return nullptr;
  }

  std::optional<Rejection> why_not(const DeviceReport& d, const BackendReport& b, bool asked) const {
    if (const Rejection* f = failed(d.id)) return *f;
    if (d.software && !request_.allow_software)
      return as_remembered({d.id, reason::kSoftwareDevice, format("{} emulates a GPU on the CPU", d.name),
                            "'allow_software_devices' allows it"},
                           b);
    // The card was rejected already, unless only its other backend was at fault.
    if (!d.duplicate_of.empty() && !asked && !failed(d.duplicate_of))
      return Rejection{d.id, reason::kDuplicateDevice, format("it is the same card as {}", d.duplicate_of),
                       ""};
    if (request_.bytes && d.memory_free && *d.memory_free < request_.bytes)
      return Rejection{d.id, reason::kNotEnoughMemory,
                       format("{} is needed, and {} of {} is free", human_bytes(request_.bytes),
                              human_bytes(*d.memory_free), human_bytes(d.memory_total)),
                       ""};
    return std::nullopt;
  }

  Error nothing(const std::vector<Rejection>& rejected) const {
    const std::string all = in_one_line(rejected, [](const Rejection& r) { return r.sentence(); });
    const char* first = reason::kNoDevice;
    bool memory = false;
    for (const Rejection& r : rejected) {
      memory = memory || r.reason == reason::kNotEnoughMemory;
      if (&r == &rejected.front())
        if (const char* known = known_reason(r.reason)) first = known;
    }
    if (request_.strict && !automatic())
      return {Code::NoBackend,
              format("the requested backend '{}' is not available: {}", request_.backend, all),
              "choose another backend",
              first,
              "backend",
              request_.backend,
              "",
              {{"strict", "false", "to fall back to another device"}}};
    if (memory)
      return {Code::OutOfMemory, "no device has enough memory: " + all,
              "use a smaller model or context, or close other programs", reason::kNotEnoughMemory};
    return {Code::NoBackend, "no backend can be used: " + all, "install a missing driver", first};
  }

  std::vector<BackendReport> reports_;
  const SelectionRequest& request_;
  std::vector<std::string> order_;
};

}  // namespace

std::string Rejection::sentence() const { return format("{}: {}", what, in_full(message, remedy)); }

std::string in_one_line(const std::vector<Rejection>& all, std::string (*sentence)(const Rejection&)) {
  std::string line;
  std::vector<std::string_view> absent;
  const bool several = std::count_if(all.begin(), all.end(),
                                     [](const Rejection& r) { return r.reason == reason::kNotBuilt; }) > 1;
  for (const Rejection& r : all)
    if (r.reason == reason::kNotBuilt && several) absent.push_back(r.what);
    else line += (line.empty() ? "" : "; ") + sentence(r);
  if (absent.empty()) return line;
  return format("{}{}{} are not in this build", line, line.empty() ? "" : "; ", fmt::join(absent, ", "));
}

Error Rejection::error() const {
  const char* known = known_reason(reason);
  return {Code::NoBackend, message, remedy, known ? known : gimbal::reason::kOpenFailed};
}

Rejection rejection(const Unusable& u) {
  const char* word = *u.why.reason                     ? u.why.reason
                     : u.why.code == Code::OutOfMemory ? reason::kNotEnoughMemory
                     : u.why.code == Code::DeviceLost  ? reason::kDeviceLost
                                                       : reason::kVerificationFailed;
  return {u.device, word, u.why.message, u.why.remedy};
}

std::string DeviceChoice::id() const { return format("{}:{}", backend, index); }

std::vector<std::string> full_order(const std::vector<std::string>& order) {
  std::vector<std::string> full;
  auto add = [&](const std::string& name) {
    if (std::find(full.begin(), full.end(), name) == full.end()) full.push_back(name);
  };
  for (const std::string& name : order) add(name);
  for (const char* name : kBackendOrder) add(name);
  return full;
}

std::optional<Error> wrong_number(const std::vector<BackendReport>& reports,
                                  const SelectionRequest& request) {
  for (const BackendReport& r : reports) {
    const int count = int(r.devices.size() + r.refused.size());
    if (r.backend != request.backend || !r.available || !request.device) continue;
    if (*request.device >= 0 && *request.device < count) continue;
    return Error{Code::NoBackend,
                 format("backend '{}' has no device {}; it has {} (0 to {})", r.backend, *request.device,
                        count, count - 1),
                 "choose one of these", reason::kNoDevice};
  }
  return std::nullopt;
}

Result<DeviceChoice> choose_device(const std::vector<BackendReport>& reports,
                                   const SelectionRequest& request) {
  if (request.backend != "auto" || !request.device) return Chooser(reports, request).choose();
  // An index without a backend name: choose the backend first.
  SelectionRequest any = request;
  any.device.reset();
  auto first = Chooser(reports, any).choose();
  if (!first) return first;
  any.backend = first->backend, any.device = request.device;
  auto numbered = Chooser(reports, any).choose();
  if (!numbered) return numbered;
  std::erase_if(first->rejected, [&](const Rejection& r) { return r.backend() == first->backend; });
  numbered->rejected.insert(numbered->rejected.begin(), first->rejected.begin(), first->rejected.end());
  if (numbered->unwanted.empty()) numbered->why = first->why;
  return numbered;
}

}  // namespace gimbal
