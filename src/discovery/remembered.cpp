#include "discovery/remembered.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/file.h"
#include "base/format.h"
#include "device/reason.h"

namespace gimbal {
namespace {

constexpr size_t kMaxFailureBytes = 1 << 20;
constexpr std::string_view kFailuresTitle = "gimbal: backends that crashed or hung (may be deleted)\n";

int64_t now() { return int64_t(std::time(nullptr)); }

bool worth_keeping(const std::string& word) {
  return word == reason::kProbeCrashed || word == reason::kProbeTimeout;
}

std::string ago(int64_t seconds) {
  return seconds < 120    ? "a moment ago"
         : seconds < 7200 ? format("{} minutes ago", seconds / 60)
                          : format("{} hours ago", seconds / 3600);
}

}  // namespace

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n') c = ' ';
  return text;
}

// One failure to a line, its parts with tabs between.
void RememberedFailures::read() {
  if (std::exchange(read_, true) || file_.empty()) return;
  auto text = read_file(file_);
  if (!text || text->size() > kMaxFailureBytes || text->rfind(kFailuresTitle, 0) != 0) return;
  for (size_t at = kFailuresTitle.size(), end; (end = text->find('\n', at)) != text->npos; at = end + 1) {
    std::string parts[6];
    size_t begin = at, n = 0;
    for (; n < 6; n++) {
      const size_t stop = n == 5 ? end : std::min(text->find('\t', begin), end);
      parts[n] = text->substr(begin, stop - begin);
      if (stop == end) break;
      begin = stop + 1;
    }
    int64_t when = 0;
    const auto number = std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), when);
    if (n != 5 || number.ec != std::errc() || !worth_keeping(parts[3])) continue;
    if (when > now() || now() - when > kRememberedFor || failures_.size() >= kMaxRemembered) continue;
    failures_.push_back({parts[1], parts[2], parts[3], parts[4], parts[5], when});
  }
}

void RememberedFailures::write() const {
  if (file_.empty()) return;
  std::string text(kFailuresTitle);
  for (const Failure& f : failures_)
    text += format("{}\t{}\t{}\t{}\t{}\t{}\n", f.when, f.backend, f.key, f.reason, f.message, f.remedy);
  (void)replace_file(file_, text);
}

std::optional<BackendReport> RememberedFailures::find(const std::string& backend, const std::string& key) {
  const std::lock_guard lock(mutex_);
  read();
  for (const Failure& f : failures_) {
    if (f.backend != backend || f.key != one_line(key)) continue;
    BackendReport r;
    r.backend = backend, r.present = true, r.remembered = true;
    r.reason = f.reason, r.remedy = f.remedy;
    r.message = format("{}, {}; it was not asked again", f.message, ago(now() - f.when));
    return r;
  }
  return std::nullopt;
}

void RememberedFailures::learn(const BackendReport& r, const std::string& key) {
  const std::lock_guard lock(mutex_);
  read();
  const auto known = std::erase_if(failures_, [&](const Failure& f) { return f.backend == r.backend; });
  if (worth_keeping(r.reason))
    failures_.push_back({r.backend, one_line(key), r.reason, one_line(r.message), one_line(r.remedy), now()});
  else if (!known) return;
  write();
}

std::string library_key(const std::string& path, const std::string& build_id) {
  struct stat s {};
  if (path.empty() || stat(path.c_str(), &s) != 0) return format("{}#{}", path, build_id);
  return format("{}#{}#{}.{:09}", path, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

}  // namespace gimbal
