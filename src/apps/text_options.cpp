#include "apps/text_options.h"

#include "apps/input_text.h"

namespace gimbal {

void TextOptions::declare(Arguments& a) {
  a.section("Text");
  a.text("-p,--prompt", "TEXT", "the beginning of the text; without it and --file: stdin", prompt);
  a.text("-f,--file", "FILE", "a file or pipe with the prompt, without a newline at its end; - is stdin",
         file);
  a.whole("-n,--max-tokens", "N",
          "tokens to generate; -1: until the model stops or the context is full (default)", max_tokens_, -1,
          1 << 30);
  a.texts("--stop", "TEXT", "end before this text; repeatable", settings.stops);
  a.flag("--ignore-eos", "go on when the model ends its text", settings.ignore_stop_tokens);
  a.flag("--print-tokens", "print the ids of the generated tokens in place of their text", print_tokens);
  a.flag("--stats", "speed, memory, kernels and seed, on stderr", stats);
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
