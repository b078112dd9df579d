// --prompt-cache FILE: the first prompt's beginning is taken from the file, and the whole prompt is written
// there.
#pragma once
#include <optional>

#include "engine/prompt_cache.h"

namespace gimbal {

class KeptPrompt {
 public:
  KeptPrompt(std::optional<std::string> path, bool quiet) : path_(std::move(path)), quiet_(quiet) {}

  // Before the first prompt. Says what became of it. Errors: the device's.
  Status restore(const LoadedModel&, Session&);
  // When the first prompt is computed; does nothing later, nor when the file has all of it. What goes wrong
  // is said and no error.
  void save(const LoadedModel&, Session&);

 private:
  std::optional<std::string> path_;  // none: nothing to do, or done
  const bool quiet_;
  Inputs held_;  // that the file has
};

}  // namespace gimbal
