// Computes a text and picks its next tokens: a sampler over a session. With drafts, several tokens are
// computed in one batch. The sampler then picks behind each of them in turn, as it would without, and a draft
// is kept as long as it is what was picked. As a row's bits do not depend on the batch, and each token takes
// its random numbers in the text's order, drafts cannot change a text.
#pragma once
#include <functional>

#include "grammar/constraint.h"
#include "runtime/drafting.h"
#include "runtime/sampler.h"
#include "runtime/session.h"

namespace gimbal {

// Called when the device is lost. May move the session to another model (Session::move_to) and answer Done:
// the text then goes on with the same next token. Empty, or an error: the text ends with that error.
using Recover = std::function<Status(Session&, const Error&)>;

class Picker {
 public:
  // All outlive it. `drafting` may be nullptr. `prompt`: the text that the sampler's penalties look at,
  // before the first token is picked. `constraint`: which tokens may be picked, which are then part of its
  // text; nullptr: any.
  Picker(Session& session, const SamplerSettings& sampler, const Recover& recover, Drafting* drafting,
         std::span<const int32_t> prompt, Constraint* constraint = nullptr);
  // Lets the session forget drafts that were computed beyond what was gone on with.
  ~Picker();

  // Computes tokens of the prompt; with the last of them the first token is picked.
  Status read(std::span<const int32_t> tokens, bool last);
  // The token behind all that was computed. Errors: those of Sampler::pick.
  const Result<int32_t>& next() const { return picks_[at_]; }
  // next() is part of the text; picks the one behind it, after which `most` may follow. There must be room.
  Status go_on(int most);
  // Positions of the context for go_on().
  int room() const { return session_.model().context() - position_; }

 private:
  Status compute(std::span<const int32_t> tokens, Session::Wanted wanted);
  Status compute_once(std::span<const int32_t> tokens, Session::Wanted wanted);
  template <class Pick>
  void pick(size_t index, Pick pick);
  Result<int32_t> pick_top(const TopLogits&, size_t row);
  Result<int32_t> pick_any(std::span<const float> logits);

  Session& session_;
  Sampler sampler_;
  const Recover& recover_;
  Drafting* drafting_;
  Constraint* constraint_;
  std::vector<int32_t> text_;  // what the session held, the prompt, and all that was picked
  const size_t begin_;         // of the prompt in it
  std::vector<int32_t> rows_;  // of the step
  size_t drafts_ = 0;          // how many of them, at the end
  int position_ = 0;           // tokens that the session holds without drafts
  std::vector<Result<int32_t>> picks_;
  size_t at_ = 0;
  bool moved_ = false;  // in the step: it took longer than a step
};

}  // namespace gimbal
