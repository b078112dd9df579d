#include "chat/infill.h"

namespace gimbal {
namespace {

struct Names {
  Token InfillTokens::*token;
  const char* key;
  std::initializer_list<const char*> texts;
};

// Of the models' published tokenizers: Qwen2.5-Coder, StarCoder and Granite, CodeLlama, DeepSeek-Coder,
// GLM-4.5.
constexpr Names kNames[] = {
    {&InfillTokens::prefix,
     "tokenizer.ggml.fim_pre_token_id",
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
      "<|code_prefix|>"}},
    {&InfillTokens::suffix,
     "tokenizer.ggml.fim_suf_token_id",
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
      "<|code_suffix|>"}},
    {&InfillTokens::middle,
     "tokenizer.ggml.fim_mid_token_id",
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
      "<|code_middle|>"}},
    {&InfillTokens::repository,
     "tokenizer.ggml.fim_rep_token_id",
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {&InfillTokens::file, "tokenizer.ggml.fim_sep_token_id", {"<|file_sep|>"}},
};

// The token whose whole text this is.
Token named(const Tokenizer& tokenizer, const char* text) {
  const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = true});
  return ids.size() == 1 && tokenizer.is_control(ids[0]) ? ids[0] : -1;
}

}  // namespace

InfillTokens infill_tokens(const Metadata& metadata, const Tokenizer& tokenizer) {
  InfillTokens to;
  for (const Names& n : kNames) {
    Token& token = to.*n.token;
    // Converters write "none" as a number that no vocabulary has.
    const auto id = metadata.unsigned_integer(n.key);
    if (id && *id < uint64_t(tokenizer.size())) token = Token(*id);
    for (const char* text : n.texts)
      if (token < 0) token = named(tokenizer, text);
  }
  return to;
}

std::vector<Token> infill_prompt(const InfillTokens& t, const Tokenizer& tokenizer, const std::string& before,
                                 const std::string& behind, const std::string& typed,
                                 std::span<const InfillFile> files) {
  std::vector<Token> to;
  const auto add = [&](const std::string& text) {
    const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = false});
    to.insert(to.end(), ids.begin(), ids.end());
  };
  if (t.repository >= 0) to.push_back(t.repository), add("myproject\n");
  for (const InfillFile& f : files) {
    if (t.file >= 0) to.push_back(t.file), add(f.name + "\n");
    else add("\n\n--- snippet ---\n\n");
    add(f.text);
  }
  if (t.file >= 0) to.push_back(t.file), add("filename\n");
  if (tokenizer.adds_bos() && tokenizer.bos() >= 0) to.push_back(tokenizer.bos());
  to.push_back(t.prefix), add(before), add(typed);
  to.push_back(t.suffix), add(behind);
  to.push_back(t.middle);
  return to;
}

}  // namespace gimbal
