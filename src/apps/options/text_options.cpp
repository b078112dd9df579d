#include "apps/options/text_options.h"

#include "apps/toolkit/input_text.h"

namespace gimbal {

void TextOptions::declare(Arguments& a) {
  a.section("Text");
  a.text("-p,--prompt", "TEXT", "the prompt; without -p and -f it is read from stdin", prompt);
  a.text("-f,--file", "FILE",
         "read the prompt from a file or pipe; one newline at its end is dropped; -: stdin", file);
  a.whole("-n,--max-tokens", "N", "maximum number of tokens to generate; -1: no maximum (default)",
          max_tokens_, -1, 1 << 30);
  a.texts("--stop", "TEXT", "stop before this text is printed; repeatable", settings.stops);
  a.flag("--ignore-eos", "do not stop at the model's end-of-text token", settings.ignore_stop_tokens);
  a.flag("--print-tokens", "print the ids of the generated tokens instead of their text", print_tokens);
  a.flag("--stats", "print speed, memory, kernels and seed to stderr", stats);
  sampling_.declare(a);
}

Status TextOptions::finish() {
  if (prompt && file) return Error{Code::Usage, "-p and --file each give a prompt", "give only one of them"};
  settings.max_tokens = max_tokens_.value_or(-1);
  if (auto ok = sampling_.finish(); !ok) return ok;
  settings.sampler = sampling_.settings;
  return validate_stops(settings.stops);
}

Result<std::string> TextOptions::text(const std::function<uint64_t()>& max_bytes) const {
  if (prompt) return *prompt;
  auto read = read_text(file.value_or("-"), max_bytes);
  if (!read) return read.error();
  return without_last_newline(std::move(*read));
}

}  // namespace gimbal
