// DSpark's Markov head: logits of a row in a block of guesses, changed by the token before it. With two
// matrices of few columns, a token's row of the first times each logit's row of the second is added to that
// logit. DeepSeek-AI and Peking University, "DSpark: Confidence-Scheduled Speculative Decoding with
// Semi-Autoregressive Generation", 2026.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "files/model_source.h"

namespace gimbal {

class MarkovHead {
 public:
  // nullptr: the file has none. Errors: Malformed if the matrices do not fit the number of logits, or each
  // other.
  static Result<std::shared_ptr<const MarkovHead>> open(const ModelSource& file, int64_t logits);
  // Adds its part to the values of these logits, behind the token; nothing behind one that it does not know.
  // Reads the rows from the file. Errors: the reader's.
  Status add(int32_t token, std::span<const int32_t> logits, std::span<float> values) const;

 private:
  explicit MarkovHead(const ModelSource& file) : file_(file) {}
  Status row(const StoredTensor&, int64_t index, std::vector<float>& to) const;

  const ModelSource file_;
  float scale_ = 1;
};

}  // namespace gimbal
