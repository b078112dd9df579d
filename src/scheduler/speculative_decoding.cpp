#include "scheduler/speculative_decoding.h"

#include "scheduler/scheduled_request.h"

namespace gimbal {

void SpeculativeDecoding::join(ScheduledRequest& g) const {
  if (g.drafting || !options_.drafter) return;
  if (auto drafter = options_.drafter(g))
    g.drafting = std::make_unique<Drafting>(std::move(drafter), options_.length, options_.failed, costs_);
}

void SpeculativeDecoding::begin(int texts, int rows) {
  beside_ = {rows, texts, 0, double(texts)};
  guessed_ = 0, guessing_ = 0;
}

Result<std::span<const int32_t>> SpeculativeDecoding::propose(ScheduledRequest& g, int most) {
  std::span<const int32_t> none;
  if (most > 0) join(g);
  if (!g.drafting) return none;
  if (!g.drafting->begun()) {
    if (most <= 0) return none;
    if (auto ok = g.drafting->begin(g.text.tokens()); !ok) return ok.error();
  }
  auto drafts = g.drafting->propose(
      g.text.tokens(), most, {beside_.rows - 1, beside_.texts - 1, beside_.drafts, beside_.tokens - 1});
  if (!drafts) return drafts;
  guessed_ += g.drafting->guessed(), guessing_ += g.drafting->seconds();
  const int n = int(drafts->size());
  beside_.rows += n, beside_.drafts += n, beside_.tokens += g.drafting->length().expected(n) - 1;
  return drafts;
}

void SpeculativeDecoding::took(int tokens, double seconds) {
  costs_->took({beside_.rows, tokens, guessed_, seconds, guessing_, beside_.texts});
}

}  // namespace gimbal
