// An accepted request: its text, its scheduling state, and the sink that gets its tokens. Its text does not
// depend on other requests, nor on how often rows had to be computed again.
#pragma once
#include <memory>
#include <optional>

#include "runtime/drafting.h"
#include "runtime/prefix_store.h"
#include "runtime/text_state.h"
#include "scheduler/mask_worker.h"
#include "scheduler/request.h"

namespace gimbal {

struct Client;

class ScheduledRequest {
 public:
  // Checks a request without the model. `width`: of embeddings, 0 if the model takes none; `capacity`:
  // positions that a text can have; `adapters`: the number of LoRA adapters. Errors: those of
  // GenerationService::submit.
  static Status check(const GenerationRequest&, int vocabulary, int width, int capacity, size_t adapters = 0);

  // For a request that passed check(). `constraint`: of GenerationRequest::grammar; none: any text.
  ScheduledRequest(uint64_t id, GenerationRequest, GenerationSink, const Tokenizer&, int capacity,
                   std::optional<Constraint> constraint = {});

  const uint64_t id;
  const std::string client_name, owner;

  // ---- scheduling state, owned by the scheduler
  Client* client = nullptr;
  std::unique_ptr<Sequence> sequence;  // while it runs
  uint64_t admitted = 0;               // rises with each admission; 0: never admitted
  uint64_t follows = 0;                // id; waits until this one has computed `follow_until` tokens
  int follow_until = 0;
  uint64_t looked_around = UINT64_MAX;  // the number of admissions at its last search for one to follow
  int checkpoint_at = 0;                // a length to remember the model's state at
  std::optional<StoredText> stored;     // while it runs, with a prefix store
  double submitted = 0;                 // base/clock.h
  void emit_begun() {                   // call before each step with its rows
    if (sink_.begun) std::exchange(sink_.begun, nullptr)();
  }

  // ---- its drafts: scheduler/speculative_decoding.h
  std::unique_ptr<Drafting> drafting;  // while it runs; nullptr: no drafts
  int again = 0;                       // tokens to compute again, because the model could not keep them
  uint64_t drafted = 0, accepted = 0;  // tokens

  // ---- its text
 private:
  const std::shared_ptr<MaskedText> masked_;  // nullptr: no constraint

 public:
  TextState text;  // declared after its constraint
  // Tokens that must be computed before the next one can be picked.
  int missing() const { return text.missing(*sequence); }
  // It needs only a few rows for its next token: the last token, and tokens lost by rejected drafts.
  bool goes_on() const { return !text.ended() && missing() == 1 + again; }
  bool over() const { return (text.ended() && text.scored()) || failed_; }
  bool failed() const { return failed_; }
  // Whether the mask for the next token is ready (MaskWorker::find).
  bool may_choose(MaskWorker& masks) const {
    return !masked_ || masks.find(masked_, text.constrained_left());
  }
  void emit(const TokenEvent& event, double at) { last_token_at = at, sink_.token(event); }
  void emit_scored(const TokenEvent& event) const { sink_.scored(event); }
  double last_token_at = 0;  // base/clock.h; 0: never

  // Calls the sink for the last time; exactly one of these. Reports `shared_tokens`, too.
  void emit_end();
  void emit_cancelled();
  void emit_failed(const Error&);
  int shared_tokens = 0, stored_tokens = 0;
  std::string stored_page;

 private:
  GenerationEnd summary(Finish) const;

  GenerationSink sink_;
  bool failed_ = false;
};

}  // namespace gimbal
