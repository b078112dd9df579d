// --prompt-cache FILE: restores the beginning of the first prompt from the file, and saves the whole prompt
// there.
#pragma once
#include <optional>

#include "engine/prompt_cache.h"

namespace gimbal {

class KeptPrompt {
 public:
  KeptPrompt(std::optional<std::string> path, bool quiet) : path_(std::move(path)), quiet_(quiet) {}

  // Call it before the first prompt. Notes the result. Errors: the device's.
  Status restore(const LoadedModel&, Session&);
  // Call it when the first prompt is computed. Does nothing on later calls, or if the file already has all
  // of it. Failures are notes, not errors.
  void save(const LoadedModel&, Session&);

 private:
  std::optional<std::string> path_;  // none: nothing to do, or done
  const bool quiet_;
  Inputs held_;  // contents of the file
};

}  // namespace gimbal
