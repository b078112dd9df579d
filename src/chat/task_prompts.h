// Prompts of tasks other than chat: text with a gap to fill, and pairs of texts to rank.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

// Prompts that a model fills in the middle of: text before a gap and text behind it, between the tokens that
// the model was trained with.

// -1: the vocabulary has no such token.
struct InfillTokens {
  Token prefix = -1, suffix = -1, middle = -1;
  Token repository = -1, file = -1;  // before the name of the project, and of each of its files

  bool complete() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

// By the file's ids (tokenizer.ggml.fim_pre_token_id and so on), else by known names.
InfillTokens infill_tokens(const Metadata&, const Tokenizer&);

struct InfillFile {
  std::string name, text;
};

// The form of llama.cpp's server, which is the one of Qwen2.5-Coder where the vocabulary has tokens for files
// (arXiv 2409.12186, section 3.2.2). `typed`: what stands before the gap already, behind `before`. No text
// becomes a control token.
std::vector<Token> infill_prompt(const InfillTokens&, const Tokenizer&, const std::string& before,
                                 const std::string& behind, const std::string& typed = "",
                                 std::span<const InfillFile> files = {});

// Rerankers: a query and a document as one text, and the score of the pair.

// The input that a reranker was trained on: the prompt of its file; or the query, a token that ends it, and
// the document, with the usual tokens around them.
std::vector<Token> ranked_pair(const Metadata&, const Tokenizer&, std::string_view query,
                               std::string_view document);

// The model's own judgement of a pair, from 0 to 1: its "yes" against its "no", if it has both. `scores`: one
// or two numbers, not normalised.
double ranked_score(std::span<const float> scores);

}  // namespace gimbal
