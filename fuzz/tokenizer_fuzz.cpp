// libFuzzer over all tokenizers: the input is a model file and, as it stands, also the text. Whatever a
// vocabulary holds, a text becomes ids of that vocabulary, and plain text becomes no control token; only the
// unknown token may be one, in a file that names one.

#include "files/gguf.h"
#include "require.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace gimbal;

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = special});
    Token unknown = -1;
    for (const Token id : ids) {
      require(id >= 0 && id < tokenizer.size());
      if (special || !tokenizer.is_control(id)) continue;
      require(unknown < 0 || unknown == id);
      unknown = id;
    }
    (void)tokenizer.decode(ids, special);
  }
  (void)tokenizer.encode(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = parse_gguf(Bytes(reinterpret_cast<const std::byte*>(data), size), "fuzzed.gguf");
  if (!file) return 0;
  const auto tokenizer = Tokenizer::create(file->metadata());
  if (!tokenizer) {
    require(tokenizer.error().message.find("fuzzed.gguf") != std::string::npos);
    return 0;
  }
  use(**tokenizer, {reinterpret_cast<const char*>(data), size});
  return 0;
}
