// The conversation of `gimbal run` on a terminal.
#pragma once
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ChatSettings {
  GenerateSettings generate;  // the seed is that of the first turn; each further turn takes the next number
  bool stats = false;
  bool quiet = false;
};

// Until the user leaves. Answers the exit code.
Result<int> chat(Engine&, const LoadedModelPtr&, const Tokenizer&, const ChatSettings&);

// Why the text ended, when the user may wonder: empty for the usual ends.
std::string explain_finish(Finish, const Model&);

}  // namespace gimbal
