// Drivers that crashed or hung when they were asked for devices: remembered as long as the program runs, and
// in a file for the next one, so that nobody waits for the same hang twice.
#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "base/json_cache.h"
#include "discovery/report.h"

namespace gimbal {

// What both kinds of memory keep at most: entries, and how long, in seconds.
constexpr size_t kMaxRemembered = 64;
constexpr int64_t kRememberedFor = 24 * 60 * 60;

// Thread-safe.
class RememberedFailures {
 public:
  // `file` may be empty: then only this process remembers.
  explicit RememberedFailures(std::string file)
      : cache_(std::move(file), "failures", kMaxRemembered, kRememberedFor) {}

  // The failure of this very library (`key`), with how long ago it was in its reason. Those of other programs
  // are forgotten after a day: a driver can be repaired.
  std::optional<BackendReport> find(const std::string& backend, const std::string& key);
  // Keeps crashes and time-outs; any other report clears what was known. A file that cannot be written is no
  // error.
  void learn(const BackendReport&, const std::string& key);

 private:
  std::mutex mutex_;
  JsonCache cache_;
};

// What changes whenever the code does: path, size and time of a plugin; for a linked backend its build id.
std::string library_key(const std::string& path, const std::string& build_id);

}  // namespace gimbal
