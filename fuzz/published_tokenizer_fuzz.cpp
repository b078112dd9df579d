// libFuzzer over tokenizer.json: whatever it says, the tokenizer is refused with a reason, or gives tokens of
// its vocabulary for any text. A zero byte ends the file and begins the text.
#include <string>

#include "huggingface/metadata_builder.h"
#include "huggingface/tokenizer_json.h"
#include "require.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\0'), all.size());
  std::string text = all.substr(std::min(end + 1, all.size()));
  if (text.empty()) text = "Hello  wo\xcc\x81rld 123 <s>\xff\xea\xb0\x81";
  MetadataBuilder out("fuzzed");
  const TokenizerTexts texts{"fuzzed", all.substr(0, end), {}, {}, {}};
  if (auto ok = add_tokenizer(texts, ModelConfig(Json::object(), "fuzzed"), 0, out); !ok) {
    require(ok.error().message.size() > 10);
    return 0;
  }
  const auto tokenizer = Tokenizer::create(out.metadata());
  if (!tokenizer) {
    require(tokenizer.error().message.size() > 10);
    return 0;
  }
  for (const Token id : (*tokenizer)->encode(text)) require(id >= 0 && id < (*tokenizer)->size());
  const auto ids = (*tokenizer)->encode(text, {.add_bos = false, .parse_special = false});
  (*tokenizer)->decode(ids, true);
  return 0;
}
