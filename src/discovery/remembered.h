// Cache of probe failures: drivers that crashed or hung, kept in memory and in a file for later processes, so
// that a hang is waited for only once.
#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "base/json_cache.h"
#include "discovery/report.h"

namespace gimbal {

// Limits of both caches: number of entries, and lifetime in seconds.
constexpr size_t kMaxRemembered = 64;
constexpr int64_t kRememberedFor = 24 * 60 * 60;

// Thread-safe.
class RememberedFailures {
 public:
  // `file` may be empty: then the cache is in memory only.
  explicit RememberedFailures(std::string file)
      : cache_(std::move(file), "failures", kMaxRemembered, kRememberedFor) {}

  // The failure of exactly this library (`key`); its reason includes its age. Entries of other processes
  // expire after a day, because a driver may be repaired.
  std::optional<BackendReport> find(const std::string& backend, const std::string& key);
  // Stores crashes and time-outs; any other report clears the
  // entry. Failure to write the file is ignored.
  void learn(const BackendReport&, const std::string& key);

 private:
  std::mutex mutex_;
  JsonCache cache_;
};

// Changes whenever the code changes: path, size and time of a plugin; build id of a linked backend.
std::string library_key(const std::string& path, const std::string& build_id);

}  // namespace gimbal
