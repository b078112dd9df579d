#include "runtime/block_drafter.h"

#include <algorithm>

namespace gimbal {

int BlockDrafter::rows_of(const DraftHead& head) {
  return std::min(head.block, kMaxDrafts + (head.from_first ? 0 : 1));
}

Result<std::unique_ptr<BlockDrafter>> BlockDrafter::create(Model& model, const DraftHead& head) {
  auto rows = HeadRows::create(model, &head, 0);
  if (!rows) return rows.error();
  return std::unique_ptr<BlockDrafter>(new BlockDrafter(std::move(*rows), head));
}

BlockDrafter::BlockDrafter(HeadRows rows, const DraftHead& head)
    : HeadDrafter(std::move(rows), head.arch->name),
      block_(rows_of(head)),
      first_(head.from_first ? 0 : 1),
      mask_(head.mask),
      markov_(head.markov),
      no_state_(rows_.width()) {}

Result<std::vector<int32_t>> BlockDrafter::propose(std::span<const int32_t> text, int n) {
  std::vector<int32_t> guess;
  const int last = int(text.size()) - 2;  // the next position is not computed yet
  const auto known = rows_.ends_at(last);
  if (!known) return known.error();
  // A shorter block has other guesses: its rows attend to fewer masks.
  if (!*known || n <= 0 || last + block_ >= rows_.model().context()) return guess;
  if (auto ok = rows_.follow(text, last, 0, block_); !ok) return ok.error();
  Batch& batch = rows_.batch();
  Sequence& sequence = rows_.sequence();
  const int first = last + 1 - rows_.begin();
  for (int i = 0; i < block_; i++)
    batch.rows.push_back(
        {&sequence, i == 0 ? text.back() : mask_, first + i, rows_.wanted(), no_state_.data()});
  batch.top = markov_ ? HeadRows::kCandidates : 1;
  const auto out = rows_.model().forward(batch);
  if (!out) return out.error();
  for (int i = first_; i < block_ && int(guess.size()) < n; i++) {
    const Result<int32_t> next =
        markov_ ? rows_.likeliest(*out, size_t(i), *markov_, guess.empty() ? text.back() : guess.back())
                : rows_.likeliest(*out, size_t(i));
    if (!next) return next.error();
    guess.push_back(*next);
  }
  sequence.truncate(first);
  return guess;
}

}  // namespace gimbal
