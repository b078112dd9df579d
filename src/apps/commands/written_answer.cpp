#include "apps/commands/run.h"

#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"

namespace gimbal {

Result<WrittenAnswer> write_answer(Session& session, const Tokenizer& tokenizer, const InputView& prompt,
                                   const GenerateSettings& settings, bool stream) {
  WrittenAnswer out;
  auto g = generate_from_text(session, tokenizer, prompt, settings, [&](std::string_view piece, Token) {
    out.text += piece;
    if (stream) print_text(piece);
    return (!stream || flush_output()) && !InterruptGuard::interrupted();
  });
  if (stream && !out.text.empty() && out.text.back() != '\n') print("\n");
  if (!g) return g.error();
  out.generated = std::move(*g);
  return out;
}

void print_text(std::string_view piece) { print(stdout_is_terminal() ? printable(piece, true) : piece); }

}  // namespace gimbal
