// Drafts for texts: a drafter, and how many tokens it is asked for. Outlives the texts that it serves, so
// that what one taught about costs and guesses serves the next.
#pragma once
#include <functional>
#include <memory>

#include "runtime/draft_length.h"
#include "runtime/drafter.h"

namespace gimbal {

struct DraftCounts {
  uint64_t steps = 0;     // computed, each for one token or more
  uint64_t tokens = 0;    // that they gave
  uint64_t drafted = 0;   // tokens that were guessed and computed
  uint64_t accepted = 0;  // of them: those that the text has
  double seconds = 0;     // for guessing
};
DraftCounts operator-(const DraftCounts& later, const DraftCounts& before);

class Drafting {
 public:
  enum class Length { Adapts, Most };  // Most: as many tokens as can be, whatever they cost
  // Told, once, why there are no drafts any more. Done: texts go on without them. An error ends them.
  using Failed = std::function<Status(const Error&)>;
  // `books`: shared by all texts that a model computes together.
  explicit Drafting(std::unique_ptr<Drafter> drafter, Length length = Length::Adapts, Failed failed = {},
                    std::shared_ptr<DraftBooks> books = std::make_shared<DraftBooks>())
      : drafter_(std::move(drafter)),
        length_(std::move(books)),
        adapts_(length == Length::Adapts),
        failed_(std::move(failed)) {}

  // Another text, or the same one from another place; `text` is its prompt and all before. Errors: what
  // `failed` answered.
  Status begin(std::span<const int32_t> text);
  bool begun() const { return begun_; }
  // Tokens to compute behind `text`, at most `most`; they are valid until the next call. Errors: as begin().
  Result<std::span<const int32_t>> propose(std::span<const int32_t> text, int most, const Beside& beside);
  // What became of a step of this text alone: its rows, the tokens that it gave, and the seconds that it
  // took.
  void computed(int rows, int tokens, double seconds);
  // For a step of several texts: the tokens that it gave this one; what the proposal took.
  void told(int tokens);
  double seconds() const { return seconds_; }
  int guessed() const { return int(drafted_ ? drafted_ : guess_.size()); }

  std::string name() const { return drafter_->name(); }
  StepWatcher* watcher() { return drafter_->watcher(); }
  const DraftCounts& counts() const { return counts_; }
  const DraftLength& length() const { return length_; }
  bool ended() const { return ended_; }  // there are no drafts any more

 private:
  void compare(std::span<const int32_t> text);
  Status end(const Error&);
  Status guess(std::span<const int32_t> text, int n);

  std::unique_ptr<Drafter> drafter_;
  DraftLength length_;
  const bool adapts_;
  const Failed failed_;
  std::vector<int32_t> guess_;  // not compared with the text yet
  size_t at_ = 0;               // where in the text it begins
  size_t drafted_ = 0;          // tokens of it that the step computes
  double seconds_ = 0;          // for the guess of the step
  DraftCounts counts_;
  bool begun_ = false, ended_ = false;
  Status verdict_ = Done{};  // of what failed
};

}  // namespace gimbal
