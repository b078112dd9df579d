// Cross-validation: a model on our devices beside the same model in a libllama. Compares token ids, the
// outputs of layers, logits, perplexity, greedy tokens and speed, and decides whether rounding explains the
// differences.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "crossval/compare.h"
#include "engine/engine.h"
#include "llama/llama_process.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::crossval {

struct CrossvalSettings {
  std::vector<int32_t> tokens;  // to compare
  std::string text;             // that they were made of; tokenized by both. Empty: the tokens were given
  int window = 512;             // tokens that are computed together, each window as a text of its own
  int greedy = 32;              // tokens to generate after the last window's first half; 0: none
  bool layers = true;
  bool reference = true;
  int threads = 1;                                                           // of the library
  std::function<bool(const char* doing, size_t done, size_t all)> progress;  // false cancels
};

enum class Verdict { Same, WithinRounding, Different, Unknown };
const char* name_of(Verdict);  // "same", "within rounding", "different", "cannot compare"

struct IdsCompared {
  size_t ours = 0, theirs = 0;  // how many
  bool same = true;
  size_t at = 0;  // the first difference: -1 where one has no more
  int32_t our_id = -1, their_id = -1;
  std::string our_piece = {}, their_piece = {};
};
struct GreedyCompared {
  int tokens = 0, same = 0;  // asked for; equal from the first on
  int32_t our_id = -1, their_id = -1;
  double gap = 0, allowed = 0;   // of our logits between these two tokens; what rounding explains
  std::optional<bool> tie = {};  // whether rounding explains the choice; absent without a reference
};
struct Speed {
  double prompt = 0, generation = 0;  // tokens per second
};

struct CrossvalReport {
  llama::LibraryFacts library;
  llama::ModelFacts model;
  std::string device;
  std::optional<IdsCompared> ids;
  std::vector<Difference> layers;
  std::string no_layers, no_reference;  // why there are none; empty: there are
  int reference_tokens = 0;
  Difference logits;
  double our_loss = 0, their_loss = 0;  // nats per token
  int64_t scored = 0;
  std::optional<GreedyCompared> greedy;
  Speed ours, theirs;
  Verdict verdict = Verdict::Unknown;
  std::string reason;  // of the verdict: the first divergence, with its size
};

// Errors: those of the engine and of the library; Unsupported if the two cannot be compared (vocabularies of
// different sizes are a difference, not an error).
Result<CrossvalReport> cross_validate(Engine& engine, const LoadedModel& loaded, const Tokenizer& tokenizer,
                                      llama::LlamaProcess& library, const CrossvalSettings&);

// The verdict of a cross-validation, and its reason in words.

// Sets `verdict` and `reason`. In this order the first divergence counts: token ids, layers, logits, greedy
// tokens. A difference that rounding explains is no divergence; without a reference a difference has no
// verdict. Differences of layers count only if the logits behind them differ, too: else the library marks
// another value as the layer's output.
void decide(CrossvalReport&);

}  // namespace gimbal::crossval
