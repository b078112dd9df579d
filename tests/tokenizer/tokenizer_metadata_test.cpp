// Tokenizers and chat templates need metadata and no file.
#include <gtest/gtest.h>

#include <span>

#include "chat/chat_template.h"
#include "support/gguf_writer.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::test {
namespace {

TEST(TokenizerMetadata, NoFileIsNeeded) {
  std::string words;
  for (const char* word : {"<unk>", "<s>", "</s>", "a", "b", "ab"}) words += gguf_string(word);
  const std::vector<int32_t> types = {2, 3, 3, 1, 1, 1};
  const std::vector<float> scores = {0, 0, 0, -2, -2, -1};
  Metadata m("in memory");
  const auto array = [&](std::string_view key, MetadataType type, uint64_t n, Bytes data) {
    EXPECT_TRUE(m.add(key, {MetadataType::Array, MetadataArray{type, n, data}}));
  };
  EXPECT_TRUE(m.add("tokenizer.ggml.model", {MetadataType::String, std::string_view("llama")}));
  EXPECT_FALSE(m.add("tokenizer.ggml.model", {MetadataType::String, std::string_view("bert")}));
  array("tokenizer.ggml.tokens", MetadataType::String, types.size(), std::as_bytes(std::span(words)));
  array("tokenizer.ggml.token_type", MetadataType::I32, types.size(), std::as_bytes(std::span(types)));
  array("tokenizer.ggml.scores", MetadataType::F32, types.size(), std::as_bytes(std::span(scores)));
  m.add("tokenizer.ggml.add_space_prefix", {MetadataType::Bool, false});
  m.add("tokenizer.chat_template", {MetadataType::String, std::string_view("{{ messages[0].content }}!")});

  const auto tokenizer = Tokenizer::create(m);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->encode("abb", {.add_bos = false, .parse_special = false}),
            (std::vector<Token>{5, 4}));
  EXPECT_TRUE(ChatTemplate::of(m, **tokenizer));

  Metadata none("in memory");
  const auto no = Tokenizer::create(none);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().message.find("in memory: tokenizer.ggml.model: missing"), 0u) << no.error().message;
}

}  // namespace
}  // namespace gimbal::test
