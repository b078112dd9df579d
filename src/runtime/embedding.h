// Embeddings of texts: pools the model's hidden states of a text's tokens into one vector. Sums are in
// double and in token order, so that the bits depend neither on batches nor on other texts.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model.h"

namespace gimbal {

enum class Pooling : uint8_t {
  None,   // a vector for each token
  Mean,   // of all tokens
  First,  // of the first token: "cls", named after the token that begins a text of BERT
  Last,
  // The scores of a reranker: one number from the first token, or, with a decoder, two from the last token,
  // for "yes" and "no". They are not normalised.
  Rank,
};
std::string name_of(Pooling);  // "none", "mean", "cls", "last", "rank"
std::optional<Pooling> pooling_named(std::string_view name);
// The pooling of the key "<architecture>.pooling_type"; nullopt if the file lacks it, or has 0. Errors:
// Malformed for an undefined number, Unsupported for one that this version does not compute.
Result<std::optional<Pooling>> pooling_of(const Metadata&);

struct EmbedSettings {
  Pooling pooling = Pooling::Mean;
  bool normalised = true;  // to a Euclidean length of 1; zeros stay zeros
};

// Adds the needs of embed() to a user's options: no logits, hidden states of all rows, and for `texts`
// texts at most as many sequences as are useful in a step.
RunOptions embedding_options(RunOptions, const Config&, size_t texts);

// Calls the sink for each text, in order, with its embedding: ModelPlan::width(Hidden) numbers; with
// Pooling::None that many per token, in order. A step computes as many texts as fit. The model must be
// loaded with embedding_options(). Errors: Usage, naming the text, for one without tokens, with an id
// outside the vocabulary, or too long (ModelPlan::check_text), before anything is computed; Malformed for
// NaN or infinity; the devices'.
using EmbeddingSink = std::function<Status(size_t text, std::span<const float> embedding)>;
// `first`: skips the texts before it.
Status embed(Model&, std::span<const std::vector<int32_t>> texts, const EmbedSettings&, const EmbeddingSink&,
             size_t first = 0);

}  // namespace gimbal
