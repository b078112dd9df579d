// Going on when a device is lost while it generates: the model is loaded on the next best device, the session
// moves there with its tokens, and the text continues with the same next token.
#pragma once
#include <vector>

#include "apps/open_engine.h"
#include "runtime/session.h"

namespace gimbal {

// Must outlive the session that it moves. GenerateSettings::recover is a call of it.
class Recovery {
 public:
  // `model` as on the command line.
  Recovery(std::string model, EngineOptions options, RunOptions run, bool quiet);

  // Moves the session off the devices of its model, which are not used again in this run. Says so on stderr.
  // Errors: `lost` itself under --strict; those of load_model and Session::move_to.
  Status operator()(Session& session, const Error& lost);

  // What the session runs on now.
  const LoadedModel& current(const LoadedModel& first) const {
    return replacements_.empty() ? first : replacements_.back();
  }

 private:
  std::string model_;
  EngineOptions options_;
  RunOptions run_;
  bool quiet_;
  std::vector<LoadedModel> replacements_;
};

}  // namespace gimbal
