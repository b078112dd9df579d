// The ways in which `gimbal run` answers without a chat: one answer, by this engine or by a library, and
// lines that are continued.
#pragma once
#include <string>

#include "apps/options/library_options.h"
#include "engine/engine.h"
#include "engine/loader.h"
#include "runtime/generate.h"

namespace gimbal {

// One answer to a prompt, written to stdout as it comes.
struct WrittenAnswer {
  Generated generated;
  std::string text;
};

// `stream`: writes the text to stdout, else nothing. Ctrl-C ends the answer. Errors: those of generate().
Result<WrittenAnswer> write_answer(Session&, const Tokenizer&, const InputView& prompt,
                                   const GenerateSettings&, bool stream);
// Writes a piece of a text to stdout; on a terminal without its control characters.
void print_text(std::string_view piece);

// `gimbal run --raw` on a terminal, and for models without chat training: the model continues each line of
// input.
struct ContinuationSettings {
  GenerateSettings generate;  // its seed is for the first turn; each later turn adds 1
  bool stats = false;
  bool quiet = false;
  std::vector<Token> text = {};  // lines are added to it; empty: each line is a new text
};

// Runs until the user leaves. Returns the exit code.
Result<int> continue_texts(Engine&, const LoadedModelPtr&, const Tokenizer&, const ContinuationSettings&);

// gimbal run --backend llama.cpp: one answer that a libllama computes.
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
