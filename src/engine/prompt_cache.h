// Saves a model's state after a prompt in a file: the next run with the same beginning computes only the
// rest. The bytes are the device's own, so a file fits only the model, device, build and settings that made
// it. Any other file is left unchanged and reported as unusable.
#pragma once
#include <string>

#include "engine/engine.h"
#include "runtime/session.h"

namespace gimbal {

struct RestoredPrompt {
  int tokens = 0;       // restored into the session
  std::string why_not;  // if there are none: the reason, in one line
};

// Restores into an empty session. A missing or damaged file, or one of another model, is not an error.
// Errors: the device's.
Result<RestoredPrompt> restore_prompt(const std::string& path, const LoadedModel&, Session&);
// Replaces the file. Errors: Failed with the system's reason; the device's.
Status save_prompt(const std::string& path, const LoadedModel&, Session&);

}  // namespace gimbal
