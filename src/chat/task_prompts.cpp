#include "chat/task_prompts.h"

#include <algorithm>
#include <cmath>

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

// The prompt of the model file around both; control tokens written in them are not recognized.
static std::vector<Token> put_into(std::string_view words, const Tokenizer& tokenizer, std::string_view query,
                                   std::string_view document) {
  std::string text;
  std::vector<TextRange> plain;
  for (size_t at = 0; at < words.size();) {
    const size_t next = std::min(words.find("{query}", at), words.find("{document}", at));
    text += words.substr(at, next - at);
    if (next == words.npos) break;
    const bool is_query = words.substr(next).starts_with("{query}");
    plain.push_back({text.size(), text.size() + (is_query ? query : document).size()});
    text += is_query ? query : document;
    at = next + (is_query ? 7 : 10);
  }
  return tokenizer.encode(text, {.add_bos = false, .parse_special = true, .plain = plain});
}

std::vector<Token> ranked_pair(const Metadata& metadata, const Tokenizer& tokenizer, std::string_view query,
                               std::string_view document) {
  if (const auto words = metadata.string("tokenizer.chat_template.rerank"))
    return put_into(*words, tokenizer, query, document);
  std::vector<Token> all = tokenizer.encode(query, {.parse_special = false});
  std::vector<Token> second = tokenizer.encode(document, {.parse_special = false});
  // BERT's own tokenizer ends every text with the separator already.
  if (metadata.boolean("tokenizer.ggml.add_sep_token").value_or(false) &&
      metadata.string("tokenizer.ggml.model") != "bert")
    all.push_back(Token(
        metadata.unsigned_integer("tokenizer.ggml.seperator_token_id").value_or(uint64_t(tokenizer.eos()))));
  const bool begins = !second.empty() && tokenizer.bos() >= 0 && second[0] == tokenizer.bos();
  all.insert(all.end(), second.begin() + begins, second.end());
  return all;
}

double ranked_score(std::span<const float> scores) {
  const double yes = double(scores[0]) - (scores.size() > 1 ? double(scores[1]) : 0);
  return 1 / (1 + std::exp(-yes));
}

}  // namespace gimbal
