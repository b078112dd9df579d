// Answers that need no driver to be loaded again: a backend that had only devices which emulate a GPU, or no
// driver at all, says the same until something changes that decides it. Automatic choice takes none of
// these devices, so it needs the answer only to say why. Where a real device was seen nothing is kept: its
// free memory is asked for each time.
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

  // The answer of this very library (`key`, see library_key) on this system since it was started, as long as
  // nothing it depends on has changed, and for a day; BackendReport::seen says when it was given.
  std::optional<BackendReport> find(const std::string& backend, const std::string& key);
  // Keeps an answer of the kind above whose BackendReport::depends is known; any other one clears what was
  // known. `began`: when it was asked, for what changed since then may have changed it (nanoseconds since
  // 1970). A file that cannot be written is no error.
  void learn(const BackendReport&, const std::string& key, int64_t began);

 private:
  std::mutex mutex_;
  JsonCache cache_;
};

int64_t nanoseconds_now();  // since 1970

}  // namespace gimbal
