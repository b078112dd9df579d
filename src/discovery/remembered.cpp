#include "discovery/remembered.h"

#include <sys/stat.h>

#include <ctime>

#include "base/format.h"
#include "base/json.h"
#include "device/reason.h"

namespace gimbal {
namespace {

bool worth_keeping(const std::string& word) {
  return word == reason::kProbeCrashed || word == reason::kProbeTimeout;
}

std::string ago(int64_t seconds) {
  return seconds < 120    ? "a moment ago"
         : seconds < 7200 ? format("{} minutes ago", seconds / 60)
                          : format("{} hours ago", seconds / 3600);
}

}  // namespace

std::optional<BackendReport> RememberedFailures::find(const std::string& backend, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Json& e = cache_.find(backend);
  BackendReport r;
  r.backend = backend, r.present = true, r.remembered = true;
  r.reason = text_in(e, "reason"), r.remedy = text_in(e, "remedy");
  if (!worth_keeping(r.reason) || text_in(e, "library") != key) return std::nullopt;
  r.message = format("{}, {}; it was not queried again", text_in(e, "message"),
                     ago(std::time(nullptr) - e["when"].get<int64_t>()));
  return r;
}

void RememberedFailures::learn(const BackendReport& r, const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!worth_keeping(r.reason)) return void(cache_.erase(r.backend));
  (void)cache_.put(r.backend,
                   {{"library", key}, {"reason", r.reason}, {"message", r.message}, {"remedy", r.remedy}});
}

std::string library_key(const std::string& path, const std::string& build_id) {
  struct stat s {};
  if (path.empty() || stat(path.c_str(), &s) != 0) return format("{}#{}", path, build_id);
  return format("{}#{}#{}.{:09}", path, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

}  // namespace gimbal
