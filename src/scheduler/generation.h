// A request on its way: its text, its place among others, and the sink that gets its tokens. Nothing in its
// text depends on other requests, nor on how often it had to be computed anew.
#pragma once
#include <memory>
#include <optional>

#include "runtime/drafting.h"
#include "runtime/text_state.h"
#include "scheduler/masks.h"
#include "scheduler/request.h"

namespace gimbal {

struct Client;

class Generation {
 public:
  // Checks a request without the model. `width`: of embeddings, 0 where the model takes none; `capacity`:
  // positions that a text can have. Errors: those of GenerationService::submit.
  static Status check(const GenerationRequest&, int vocabulary, int width, int capacity);

  // Of a request that check() found right. `constraint`: of GenerationRequest::grammar; none: any text.
  Generation(uint64_t id, GenerationRequest, GenerationSink, const Tokenizer&, int capacity,
             std::optional<Constraint> constraint = {});

  const uint64_t id;
  const std::string client_name;

  // ---- its place among others: the scheduler's
  Client* client = nullptr;
  std::unique_ptr<Sequence> sequence;  // while it runs
  uint64_t admitted = 0;               // rises with each admission; 0: never was
  uint64_t follows = 0;                // waits for this one to compute the first `follow_until` tokens
  int follow_until = 0;
  uint64_t looked_around = UINT64_MAX;  // for one to follow, when so many had been admitted
  int checkpoint_at = 0;                // a length to remember the model's state at
  double submitted = 0;                 // base/clock.h
  void tell_begun() {                   // before each step with rows of it
    if (sink_.begun) std::exchange(sink_.begun, nullptr)();
  }

  // ---- what is guessed of it: scheduler/speculation.h
  std::unique_ptr<Drafting> drafting;  // while it runs; nullptr: nobody guesses
  int again = 0;                       // tokens to compute anew, because the model could not keep them
  uint64_t drafted = 0, accepted = 0;  // tokens

  // ---- its text
 private:
  const std::shared_ptr<MaskedText> masked_;  // nullptr: any text may come

 public:
  TextState text;  // behind the constraint that it uses
  // Tokens that must be computed before the next one can be picked.
  int missing() const { return text.missing(*sequence); }
  // It gets its next token with a few rows: all but those that wrong drafts took are computed.
  bool goes_on() const { return missing() == 1 + again; }
  bool over() const { return text.ended() || failed_; }
  bool failed() const { return failed_; }
  // Whether the next token can be picked as soon as its logits are there; else later (Masks::find).
  bool may_choose(Masks& masks) const { return !masked_ || masks.find(masked_, text.constrained_left()); }
  void tell(const TokenTold& told, double at) { last_told = at, sink_.token(told); }
  double last_told = 0;  // base/clock.h; 0: nothing was

  // The last word: one of these. `shared_tokens` is told with it.
  void tell_end();
  void tell_cancelled();
  void tell_failed(const Error&);
  int shared_tokens = 0;

 private:
  GenerationEnd summary(Finish) const;

  GenerationSink sink_;
  bool failed_ = false;
};

}  // namespace gimbal
