#include "discovery/remembered_answers.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/format.h"
#include "base/json.h"
#include "device/reason.h"
#include "discovery/depends.h"
#include "discovery/report.h"

namespace gimbal {
namespace {

// File times are those of the kernel's last tick, at most 10 ms old.
constexpr int64_t kTick = 20'000'000;

bool worth_keeping(const BackendReport& r) {
  const bool software =
      r.available && std::all_of(r.devices.begin(), r.devices.end(), [](auto& d) { return d.software; });
  return r.refused.empty() && (software || r.reason == reason::kLibraryMissing);
}

std::string here(const std::string& key) {
  static const std::string id = boot_id();
  return key + "#" + id;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes)
    for (int part : {c >> 4 & 15, c & 15}) out += "0123456789abcdef"[part];
  return out;
}
// Decodes hex; empty if invalid.
std::string bytes_of(std::string_view hex) {
  std::string out;
  for (; hex.size() >= 2; hex.remove_prefix(2)) {
    unsigned byte = 0;
    if (std::from_chars(hex.data(), hex.data() + 2, byte, 16).ptr != hex.data() + 2) return "";
    out += char(byte);
  }
  return hex.empty() ? out : "";
}

std::string date(int64_t when) {
  using namespace std::chrono;
  const sys_seconds at{seconds(when)};
  const auto midnight = floor<days>(at);
  const year_month_day day = midnight;
  const hh_mm_ss clock{at - midnight};
  return format("{:04}-{:02}-{:02} {:02}:{:02} UTC", int(day.year()), unsigned(day.month()),
                unsigned(day.day()), clock.hours().count(), clock.minutes().count());
}

}  // namespace

int64_t nanoseconds_now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

std::optional<BackendReport> RememberedAnswers::find(const std::string& backend, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Json& e = cache_.find({backend, here(key)});
  auto r = decode(bytes_of(text_in(e, "report")));
  if (!r || r->backend != backend || !worth_keeping(*r)) return std::nullopt;
  std::vector<std::string> depends;
  for (const Json& d : e.value("depends", Json::array())) {
    if (!d.is_string()) return std::nullopt;
    depends.push_back(d.get<std::string>());
  }
  if (state_of(depends).digest != text_in(e, "digest")) return std::nullopt;
  r->remembered = true, r->seen = date(e["when"].get<int64_t>());
  return r;
}

void RememberedAnswers::learn(const BackendReport& r, const std::string& key, int64_t began) {
  const std::lock_guard lock(mutex_);
  const Json where{r.backend, here(key)};
  if (worth_keeping(r) && !r.depends.empty()) {
    const DependsState state = state_of(r.depends);
    BackendReport report = r;
    report.depends.clear();  // stored separately
    if (state.last_change < began - kTick)
      return void(cache_.put(
          where, {{"digest", state.digest}, {"report", hex(encode(report))}, {"depends", r.depends}}));
  }
  (void)cache_.erase(where);
}

}  // namespace gimbal
