// Drafts for texts: a drafter, and the choice of the number of tokens. Outlives its texts, so that each
// text starts with the costs and acceptance rates measured before.
#pragma once
#include <functional>
#include <memory>

#include "runtime/draft_policy.h"
#include "runtime/drafter.h"

namespace gimbal {

struct DraftCounts {
  uint64_t steps = 0;     // computed steps, each for one token or more
  uint64_t tokens = 0;    // tokens from these steps
  uint64_t drafted = 0;   // guessed tokens that were computed
  uint64_t accepted = 0;  // of these: accepted into the text
  double seconds = 0;     // for guessing
};
DraftCounts operator-(const DraftCounts& later, const DraftCounts& before);

class Drafting {
 public:
  enum class Length { Adapts, Most };  // Most: the most tokens possible, at any cost
  // Called once, with the reason, when drafting fails. Done: texts continue. An error ends them.
  using Failed = std::function<Status(const Error&)>;
  // `costs`: shared by all texts of a model.
  explicit Drafting(std::unique_ptr<Drafter> drafter, Length length = Length::Adapts, Failed failed = {},
                    std::shared_ptr<DraftCosts> costs = std::make_shared<DraftCosts>())
      : drafter_(std::move(drafter)),
        length_(std::move(costs)),
        adapts_(length == Length::Adapts),
        failed_(std::move(failed)) {}

  // Starts another text, or the same one from another position; `text`: everything up to the end of its
  // prompt. Errors: those of `failed`.
  Status begin(std::span<const int32_t> text);
  bool begun() const { return begun_; }
  // Tokens to compute after `text`, at most `most`; valid until the next call. Errors: as begin().
  Result<std::span<const int32_t>> propose(std::span<const int32_t> text, int most, const BatchLoad& load);
  // Books a step of this text alone: its rows, its new tokens, and its
  // seconds.
  void computed(int rows, int tokens, double seconds);
  // For a step of several texts: books this text's new tokens; the time of the proposal.
  void emitted(int tokens);
  double seconds() const { return seconds_; }
  int guessed() const { return int(drafted_ ? drafted_ : guess_.size()); }

  std::string name() const { return drafter_->name(); }
  StepWatcher* watcher() { return drafter_->watcher(); }
  const DraftCounts& counts() const { return counts_; }
  const DraftPolicy& length() const { return length_; }
  bool ended() const { return ended_; }  // drafting has stopped

 private:
  void compare(std::span<const int32_t> text);
  Status end(const Error&);
  Status guess(std::span<const int32_t> text, int n);

  std::unique_ptr<Drafter> drafter_;
  DraftPolicy length_;
  const bool adapts_;
  const Failed failed_;
  std::vector<int32_t> guess_;  // not yet compared with the text
  size_t at_ = 0;               // where in the text it begins
  size_t drafted_ = 0;          // tokens of it that the step computes
  double seconds_ = 0;          // for the guess of the step
  DraftCounts counts_;
  bool begun_ = false, ended_ = false;
  Status verdict_ = Done{};  // result of `failed_`
};

}  // namespace gimbal
