// gimbal run --backend llama.cpp: one answer that a libllama computes.
#pragma once
#include "apps/options/library_options.h"
#include "engine/loader.h"
#include "runtime/generate.h"

namespace gimbal {

struct LibraryRun {
  std::vector<Token> prompt;
  GenerateSettings settings;
  std::string echo;  // printed before the answer
  bool print_tokens = false, stats = false, json = false, quiet = false;
};

// Writes the answer to stdout as it comes. Returns the exit code. Errors: those of choose_library() and of
// the library.
Result<int> run_in_library(const CommonOptions&, const ModelFile&, const Tokenizer&, const LibraryRun&);

}  // namespace gimbal
