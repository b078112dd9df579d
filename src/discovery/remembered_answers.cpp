#include "discovery/remembered_answers.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "device/reason.h"
#include "discovery/depends.h"
#include "discovery/remembered.h"
#include "discovery/report_wire.h"

namespace gimbal {
namespace {

// The times of files are those of the kernel's last tick, 10 ms ago at most.
constexpr int64_t kTick = 20'000'000;
constexpr size_t kMaxAnswerBytes = 1 << 22;
constexpr std::string_view kAnswersTitle =
    "gimbal: backends that had no hardware to offer, not asked until something changes (may be deleted)\n";

bool worth_keeping(const BackendReport& r) {
  const bool software =
      r.available && std::all_of(r.devices.begin(), r.devices.end(), [](auto& d) { return d.software; });
  return r.refused.empty() && (software || r.reason == reason::kLibraryMissing);
}

std::string here(const std::string& key) {
  static const std::string id = boot_id();
  return one_line(key + "#" + id);
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes)
    for (int part : {c >> 4 & 15, c & 15}) out += "0123456789abcdef"[part];
  return out;
}
// Empty where it is none.
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

// One answer to a line, its parts with tabs between; those of a list, which is last, likewise.
void RememberedAnswers::read() {
  if (std::exchange(read_, true) || file_.empty()) return;
  auto text = read_file(file_);
  if (!text || text->size() > kMaxAnswerBytes || text->rfind(kAnswersTitle, 0) != 0) return;
  const int64_t now = nanoseconds_now() / 1'000'000'000;
  for (size_t at = kAnswersTitle.size(), end; (end = text->find('\n', at)) != text->npos; at = end + 1) {
    std::vector<std::string> parts;
    for (size_t begin = at, stop; begin <= end; begin = stop + 1) {
      stop = std::min(text->find('\t', begin), end);
      parts.push_back(text->substr(begin, stop - begin));
    }
    Answer a;
    const auto number = std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), a.when);
    if (parts.size() < 6 || number.ec != std::errc() || answers_.size() >= kMaxRemembered) continue;
    // The time bounds what no list of files can hold, such as a card that was switched off.
    if (a.when < 0 || a.when > now || now - a.when > kRememberedFor) continue;
    a.backend = std::move(parts[1]), a.key = std::move(parts[2]), a.digest = std::move(parts[3]);
    a.report = bytes_of(parts[4]);
    a.depends.assign(parts.begin() + 5, parts.end());
    answers_.push_back(std::move(a));
  }
}

void RememberedAnswers::write() const {
  if (file_.empty()) return;
  std::string text(kAnswersTitle);
  for (const Answer& a : answers_)
    text += format("{}\t{}\t{}\t{}\t{}\t{}\n", a.when, a.backend, a.key, a.digest, hex(a.report),
                   fmt::join(a.depends, "\t"));
  (void)replace_file(file_, text);
}

std::optional<BackendReport> RememberedAnswers::find(const std::string& backend, const std::string& key) {
  const std::lock_guard lock(mutex_);
  read();
  const std::string k = here(key);
  for (const Answer& a : answers_) {
    if (a.backend != backend || a.key != k) continue;
    if (nanoseconds_now() / 1'000'000'000 - a.when > kRememberedFor) return std::nullopt;
    auto r = decode(a.report);
    if (!r || r->backend != backend || !worth_keeping(*r)) return std::nullopt;
    if (state_of(a.depends).digest != a.digest) return std::nullopt;
    r->remembered = true, r->seen = date(a.when);
    return r;
  }
  return std::nullopt;
}

void RememberedAnswers::learn(const BackendReport& r, const std::string& key, int64_t began) {
  const std::lock_guard lock(mutex_);
  read();
  const std::string k = here(key);
  auto known = std::erase_if(answers_, [&](const Answer& a) { return a.backend == r.backend && a.key == k; });
  if (worth_keeping(r) && !r.depends.empty()) {
    const DependsState state = state_of(r.depends);
    BackendReport report = r;
    report.depends.clear();  // beside it
    if (state.last_change < began - kTick)
      answers_.push_back({began / 1'000'000'000, r.backend, k, state.digest, encode(report), r.depends}),
          known = 1;
    if (answers_.size() > kMaxRemembered) answers_.erase(answers_.begin());
  }
  if (known) write();
}

}  // namespace gimbal
