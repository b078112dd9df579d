// Rerankers: a query and a document as one text, and the score of the pair.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

// The input that a reranker was trained on: the prompt of its file; or the query, a token that ends it, and
// the document, with the usual tokens around them.
std::vector<Token> ranked_pair(const Metadata&, const Tokenizer&, std::string_view query,
                               std::string_view document);

// The model's own judgement of a pair, from 0 to 1: its "yes" against its "no", if it has both. `scores`: one
// or two numbers, not normalised.
double ranked_score(std::span<const float> scores);

}  // namespace gimbal
