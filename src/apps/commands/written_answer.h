// One answer to a prompt, written to stdout as it comes.
#pragma once
#include <string>

#include "runtime/generate.h"

namespace gimbal {

struct WrittenAnswer {
  Generated generated;
  std::string text;
};

// `stream`: writes the text to stdout, else nothing. Ctrl-C ends the answer. Errors: those of generate().
Result<WrittenAnswer> write_answer(Session&, const Tokenizer&, const InputView& prompt,
                                   const GenerateSettings&, bool stream);
// Writes a piece of a text to stdout; on a terminal without its control characters.
void print_text(std::string_view piece);

}  // namespace gimbal
