// Drafts for many texts at once: decides which texts get drafts, and how many, so that the step gains time.
// A draft never changes an answer: the sampler picks after each row in turn, with the same random numbers
// and constraints as without drafts, and a draft is accepted only if it equals the picked token.
#pragma once
#include <functional>
#include <memory>

#include "runtime/drafting.h"

namespace gimbal {

class ScheduledRequest;

struct DraftOptions {
  // Returns a drafter for a request that begins to run; nullptr: none is free. Empty: no drafts.
  std::function<std::unique_ptr<Drafter>(const ScheduledRequest&)> drafter;
  Drafting::Length length = Drafting::Length::Adapts;
  Drafting::Failed failed;  // see runtime/drafting.h
};

// For one thread.
class SpeculativeDecoding {
 public:
  explicit SpeculativeDecoding(const DraftOptions& options) : options_(options) {}

  // Gives it a drafter, if it has none and one is free.
  void join(ScheduledRequest&) const;

  // ---- one step Starts a step of this many texts, with this many rows without
  // drafts.
  void begin(int texts, int rows);
  // At most `most` drafts for one of them; valid until the next call for it. Errors: those of the options'
  // `failed`; the text must then end.
  Result<std::span<const int32_t>> propose(ScheduledRequest&, int most);
  int drafts() const { return beside_.drafts; }  // of all texts so far
  // Books a step without other rows: the tokens that all texts got, and its seconds.
  void took(int tokens, double seconds);

 private:
  const DraftOptions options_;
  const std::shared_ptr<DraftCosts> costs_ = std::make_shared<DraftCosts>();
  BatchLoad beside_;  // all texts of the step, with the drafts so far
  int guessed_ = 0;
  double guessing_ = 0;  // seconds
};

}  // namespace gimbal
