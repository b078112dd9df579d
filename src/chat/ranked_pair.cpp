#include "chat/ranked_pair.h"

#include <algorithm>
#include <cmath>

namespace gimbal {

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
