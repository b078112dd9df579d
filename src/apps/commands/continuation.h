// `gimbal run --raw` on a terminal, and for models without chat training: the model continues each line of
// input.
#pragma once
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ContinuationSettings {
  GenerateSettings generate;  // its seed is for the first turn; each later turn adds 1
  bool stats = false;
  bool quiet = false;
  std::vector<Token> text = {};  // lines are added to it; empty: each line is a new text
};

// Runs until the user leaves. Returns the exit code.
Result<int> continue_texts(Engine&, const LoadedModelPtr&, const Tokenizer&, const ContinuationSettings&);

}  // namespace gimbal
