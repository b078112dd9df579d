#include "scheduler/scheduled_request.h"

#include "base/format.h"

namespace gimbal {

Status ScheduledRequest::check(const GenerationRequest& r, int vocabulary, int width, int capacity,
                               size_t adapters) {
  if (auto ok = check_adapters(r.adapters, adapters); !ok) return ok;
  if (auto ok = check_text(r, InputView(r.prompt, r.embeddings), vocabulary, width, capacity); !ok) return ok;
  if (r.scored < 0 || size_t(r.scored) > r.prompt.size())
    return Error{Code::Usage,
                 format("{} log-probabilities of a prompt of {} tokens cannot have been told", r.scored,
                        r.prompt.size()),
                 "say how many were", reason::kOutOfRange, "scored"};
  if (r.scores_prompt && (r.logprobs < 0 || !r.embeddings.empty()))
    return Error{Code::Usage, "the prompt's log-probabilities need 'logprobs' and a prompt of tokens only",
                 "set 'logprobs', or leave the embeddings out", reason::kOutOfRange, "logprobs"};
  return check_inputs(r.written, vocabulary, 0);
}

ScheduledRequest::ScheduledRequest(uint64_t id, GenerationRequest r, GenerationSink sink,
                                   const Tokenizer& tokenizer, int capacity,
                                   std::optional<Constraint> constraint)
    : id(id),
      client_name(std::move(r.client)),
      owner(std::move(r.owner)),
      masked_(constraint ? std::make_shared<MaskedText>(*std::move(constraint)) : nullptr),
      text({std::move(r.prompt), std::move(r.embeddings), std::move(r.adapters)}, 0,
           static_cast<TextSettings&&>(r), &tokenizer, capacity, masked_ ? &masked_->constraint : nullptr),
      sink_(std::move(sink)) {
  if (r.scores_prompt) text.score_prompt(r.scored);
  text.resume(r.written, r.memory);
}

GenerationEnd ScheduledRequest::summary(Finish why) const {
  GenerationEnd end;
  end.finish = why;
  end.prompt_tokens = text.prompt_tokens(), end.shared_tokens = shared_tokens;
  end.stored_tokens = stored_tokens, end.stored_page = stored_page;
  end.tokens = text.answer().tokens();
  end.drafted = drafted, end.accepted = accepted;
  if (why == Finish::StopToken) end.row = text.row();
  return end;
}

void ScheduledRequest::emit_end() {
  Answer& answer = text.answer();
  GenerationEnd end = summary(answer.finish());
  end.text = answer.rest(), end.stop = answer.stop();
  sink_.end(end);
}

void ScheduledRequest::emit_cancelled() { sink_.end(summary(Finish::Cancelled)); }

void ScheduledRequest::emit_failed(const Error& why) {
  failed_ = true;
  sink_.failed(why);
}

}  // namespace gimbal
