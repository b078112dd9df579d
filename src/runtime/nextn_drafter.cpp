#include "runtime/nextn_drafter.h"

#include <algorithm>

namespace gimbal {

Result<std::unique_ptr<NextnDrafter>> NextnDrafter::create(Model& model, const DraftHead* head) {
  auto rows = HeadRows::create(model, head, 1);
  if (!rows) return rows.error();
  return std::unique_ptr<NextnDrafter>(new NextnDrafter(std::move(*rows), head));
}

NextnDrafter::NextnDrafter(HeadRows rows, const DraftHead* head)
    : HeadDrafter(std::move(rows), head ? head->arch->name : "mtp"), stays_(head && head->stays) {
  if (stays_) row_.resize(rows_.width());
}

Result<StepOutput> NextnDrafter::compute(bool wanted) {
  Batch& batch = rows_.batch();
  batch.states = wanted;
  if (wanted) batch.rows.back().wants = rows_.wanted();
  return rows_.model().forward(batch);
}

Result<StepOutput> NextnDrafter::step(int32_t token, const float* state, bool own, bool wanted) {
  Batch& batch = rows_.batch();
  Sequence& sequence = rows_.sequence();
  batch.rows.clear();
  batch.rows.push_back({&sequence, token, sequence.computed(), {}, state});
  batch.rows.back().own_state = own;
  return compute(wanted);
}

Result<StepOutput> NextnDrafter::again(int32_t guess, const StepOutput& before, int last) {
  const size_t rows = before.states().size() / size_t(rows_.model().plan().width(Output::States));
  const std::span<const float> own = before.state(rows - 1);
  if (!stays_) return step(guess, own.data(), true, true);
  const float* target = rows_.state(last);
  std::copy(target, target + rows_.width() - own.size(), row_.begin());
  std::copy(own.begin(), own.end(), row_.end() - std::ptrdiff_t(own.size()));
  rows_.sequence().truncate(last - rows_.begin());
  return step(guess, row_.data(), false, true);
}

Result<std::vector<int32_t>> NextnDrafter::propose(std::span<const int32_t> text, int n) {
  std::vector<int32_t> guess;
  const int last = int(text.size()) - 2;  // the next position is not computed yet
  const auto known = rows_.ends_at(last);
  if (!known) return known.error();
  n = std::min(n, rows_.model().context() - last);
  if (!*known || n <= 0) return guess;
  if (auto ok = rows_.follow(text, last, 1, 0); !ok) return ok.error();
  auto out = compute(true);
  while (out) {
    guess.push_back(rows_.likeliest(*out, 0));
    if (int(guess.size()) == n) break;
    out = again(guess.back(), *out, last);
  }
  if (!out) return out.error();
  Sequence& sequence = rows_.sequence();
  sequence.truncate(last + 1 - rows_.begin());  // guesses were made from guessed states
  if (stays_ && guess.size() > 1) {             // the last position's row had a guess in place of its token
    sequence.truncate(last - rows_.begin());
    if (auto row = step(text.back(), rows_.state(last), false, false); !row) return row.error();
  }
  return guess;
}

}  // namespace gimbal
