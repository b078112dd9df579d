// `gimbal run --raw` on a terminal, and with models that were not made for chats: each line is a text that
// the model continues.
#pragma once
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ContinuationSettings {
  GenerateSettings generate;  // the seed is that of the first turn; each further turn takes the next number
  bool stats = false;
  bool quiet = false;
};

// Until the user leaves. Answers the exit code.
Result<int> continue_texts(Engine&, const LoadedModelPtr&, const Tokenizer&, const ContinuationSettings&);

}  // namespace gimbal
