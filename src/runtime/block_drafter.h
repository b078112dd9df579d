// Drafts of a head that guesses a block of tokens in one step (DraftHead::block): the text's last token and
// masks in place of the next ones are rows that attend to all of the text and to each other.
#pragma once
#include "runtime/head_drafter.h"

namespace gimbal {

class BlockDrafter final : public HeadDrafter {
 public:
  // Of the head's block, those that are computed: RunOptions::logit_rows of its model.
  static int rows_of(const DraftHead&);
  // `model`: of the draft head; outlives the drafter, which takes a sequence of it. Errors: OutOfMemory if
  // all sequences are taken.
  static Result<std::unique_ptr<BlockDrafter>> create(Model& model, const DraftHead& head);

  // The same guesses for every n. Empty if the states of `text` are unknown, if a block exceeds the context,
  // or if the text has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;

 private:
  BlockDrafter(HeadRows rows, const DraftHead& head);

  const int block_;  // rows
  const int first_;  // the first row that gives a guess
  const int32_t mask_;
  const std::shared_ptr<const MarkovHead> markov_;
  const std::vector<float> no_state_;  // of the rows of a block
};

}  // namespace gimbal
