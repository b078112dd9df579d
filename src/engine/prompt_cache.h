// Saves a model's state after a prompt in a file: the next run with the same beginning computes only the
// rest. The bytes are the device's own, so a file fits only the model, device, build and settings that made
// it. Any other file is left unchanged and reported as unusable.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/file.h"
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
// The same for a sequence of the caller's. `adapters`: the scales of its text; `into`: calls
// Model::restore().
using RestoreInto =
    std::function<Status(const InputView&, std::span<const uint32_t> first, const Model::Page&)>;
Result<RestoredPrompt> restore_prompt(const std::string& path, const LoadedModel&,
                                      const std::vector<float>& adapters, const RestoreInto& into);
// The same for an open file. `name`: for the reason.
Result<RestoredPrompt> restore_prompt(const InputFile&, const std::string& name, const LoadedModel&,
                                      const std::vector<float>& adapters, const RestoreInto& into);
// Replaces the file. Errors: Failed with the system's reason; the device's.
Status save_prompt(const std::string& path, const LoadedModel&, const Sequence&);
// Writes and flushes a draft, and leaves its commit to the caller.
Status save_prompt(DraftFile&, const LoadedModel&, const Sequence&);

}  // namespace gimbal
