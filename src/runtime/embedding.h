// Embeddings of texts: what a model gives for a text's tokens, made into one list of numbers. Sums are in
// double and in the tokens' order, so that the bits depend neither on batches nor on the other texts.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model.h"

namespace gimbal {

enum class Pooling : uint8_t {
  None,   // a list for each token
  Mean,   // of all tokens
  First,  // what the first token got: "cls", after the token that begins a text of BERT
  Last,
  // What a reranker gives: one number by the first token, or of a decoder two by the last one, for "yes" and
  // for "no". They are not normalised.
  Rank,
};
std::string name_of(Pooling);  // "none", "mean", "cls", "last", "rank"
std::optional<Pooling> pooling_named(std::string_view name);
// What the file says under "<architecture>.pooling_type"; nothing where it says nothing, or 0. Errors:
// Malformed for a number without a meaning, Unsupported for one that this version does not compute.
Result<std::optional<Pooling>> pooling_of(const Metadata&);

struct EmbedSettings {
  Pooling pooling = Pooling::Mean;
  bool normalised = true;  // to a Euclidean length of 1; zeros stay zeros
};

// What embed() needs, added to what a user wants: no logits, hidden states of all rows, and for `texts` texts
// at most as many sequences as a step is worth.
RunOptions embedding_options(RunOptions, const Config&, size_t texts);

// For each text, in order: its embedding, ModelPlan::width(Hidden) numbers; with Pooling::None as many for
// each of its tokens, one token's behind the other's. Several texts go into a step, as they fit. The model
// was loaded with embedding_options(). Errors: Usage, naming the text, for one without tokens, with an id
// outside the vocabulary, or too long (ModelPlan::check_text), before anything is computed; Malformed for
// numbers that are none; the devices'.
using EmbeddingSink = std::function<Status(size_t text, std::span<const float> embedding)>;
// `first`: those before it are left out, because the sink has them.
Status embed(Model&, std::span<const std::vector<int32_t>> texts, const EmbedSettings&, const EmbeddingSink&,
             size_t first = 0);

}  // namespace gimbal
