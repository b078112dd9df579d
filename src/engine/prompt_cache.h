// What a model remembers of a prompt, kept in a file: the next run with the same beginning computes the rest
// only. The bytes are those of the device, so a file serves the model, device, build and settings that it was
// made with; with any other it is left alone, and said to be of no use.
#pragma once
#include <string>

#include "engine/engine.h"
#include "runtime/session.h"

namespace gimbal {

struct RestoredPrompt {
  int tokens = 0;       // that the session holds now
  std::string why_not;  // where there are none: one line
};

// Into an empty session. A file that is not there is no error, nor is one that is damaged or of something
// else. Errors: the device's.
Result<RestoredPrompt> restore_prompt(const std::string& path, const LoadedModel&, Session&);
// Replaces the file. Errors: Failed with the system's reason; the device's.
Status save_prompt(const std::string& path, const LoadedModel&, Session&);

}  // namespace gimbal
