// Negative probe cache: skip a backend until one of the inputs of its last result changes. It keeps results
// of backends without a driver or with only devices that emulate a GPU: automatic choice uses none of them
// and needs the result only for its explanation. Results with a real device are never cached, because its
// free memory changes.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "discovery/remembered.h"
#include "discovery/report.h"

namespace gimbal {

// Thread-safe.
class RememberedAnswers {
 public:
  // `file` may be empty: then only this process remembers.
  explicit RememberedAnswers(std::string file)
      : cache_(std::move(file), "answers", kMaxRemembered, kRememberedFor) {}

  // The result of exactly this library (`key`, see library_key) since the last boot, if none of its inputs
  // changed, for at most a day; BackendReport::seen is set to its age.
  std::optional<BackendReport> find(const std::string& backend, const std::string& key);
  // Stores a result of this kind if its BackendReport::depends is known; any other result clears the entry.
  // `began`: start of the probe (nanoseconds since 1970); a result whose inputs changed since then is not
  // stored. Failure to write the file is ignored.
  void learn(const BackendReport&, const std::string& key, int64_t began);

 private:
  std::mutex mutex_;
  JsonCache cache_;
};

int64_t nanoseconds_now();  // since 1970

}  // namespace gimbal
