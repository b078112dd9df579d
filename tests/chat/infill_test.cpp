// Prompts with a gap, in the vocabulary of Qwen2.5-Coder: its tokens by id, and the form of its paper.
#include "chat/task_prompts.h"

#include <gtest/gtest.h>

#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

TEST(Infill, QwensTokensAndForm) {
  static constexpr const char* kOnly[] = {"qwen2"};
  const auto all = reference_vocabularies(kOnly);
  ASSERT_EQ(all.size(), 1u);
  const Tokenizer& t = *all[0].tokenizer;
  // As the model's tokenizer_config.json has them.
  const InfillTokens tokens = infill_tokens({}, t);
  EXPECT_EQ(tokens.prefix, 151659);
  EXPECT_EQ(tokens.middle, 151660);
  EXPECT_EQ(tokens.suffix, 151661);
  EXPECT_EQ(tokens.repository, 151663);
  EXPECT_EQ(tokens.file, 151664);
  const std::vector<InfillFile> files = {{"a.h", "int a;\n"}, {"b.h", "int b;\n"}};
  const auto ids = infill_prompt(tokens, t, "int main() {\n", "}\n", "  ret", files);
  EXPECT_EQ(t.decode(ids, true),
            "<|repo_name|>myproject\n<|file_sep|>a.h\nint a;\n<|file_sep|>b.h\nint b;\n<|file_sep|>filename\n"
            "<|fim_prefix|>int main() {\n  ret<|fim_suffix|>}\n<|fim_middle|>");
  InfillTokens plain = tokens;
  plain.repository = plain.file = -1;
  EXPECT_EQ(t.decode(infill_prompt(plain, t, "a<|fim_middle|>", "b"), true),
            "<|fim_prefix|>a<|fim_middle|><|fim_suffix|>b<|fim_middle|>");
  const auto marked = infill_prompt(plain, t, "a<|fim_middle|>", "b");
  EXPECT_EQ(std::count(marked.begin(), marked.end(), tokens.middle), 1) << "what is in a text stays a text";
}

TEST(Infill, AFilesIdsComeFirst) {
  static constexpr const char* kOnly[] = {"gpt-2"};
  const auto all = reference_vocabularies(kOnly);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(infill_tokens({}, *all[0].tokenizer).complete());
  Metadata metadata;
  uint64_t id = 7;
  for (const char* key : {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
                          "tokenizer.ggml.fim_mid_token_id"})
    metadata.add(key, {MetadataType::U32, id++});
  metadata.add("tokenizer.ggml.fim_sep_token_id", {MetadataType::U32, uint64_t(UINT32_MAX)});
  const InfillTokens tokens = infill_tokens(metadata, *all[0].tokenizer);
  EXPECT_EQ(tokens.prefix, 7);
  EXPECT_EQ(tokens.suffix, 8);
  EXPECT_EQ(tokens.middle, 9);
  EXPECT_EQ(tokens.file, -1) << "no id of the vocabulary";
}

}  // namespace
}  // namespace gimbal::test
