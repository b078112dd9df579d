#include "scheduler/generation.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/likelihood.h"

namespace gimbal {

Status Generation::check(const GenerationRequest& r, int vocabulary, int capacity) {
  if (auto ok = validate(r.sampler, size_t(vocabulary)); !ok) return ok;
  if (auto ok = validate_stops(r.stops); !ok) return ok;
  if (auto ok = check_prompt(r.prompt, capacity); !ok) return ok;
  for (const auto* part : {&r.prompt, &r.written})
    for (Token t : *part)
      if (t < 0 || t >= vocabulary)
        return Error{Code::Usage,
                     format("token {} is not in the model's vocabulary (0 to {})", t, vocabulary - 1), ""};
  if (r.logprobs > vocabulary)
    return Error{Code::Usage,
                 format("'logprobs' asks for {} tokens, and the vocabulary has {}", r.logprobs, vocabulary),
                 "ask for fewer", reason::kOutOfRange, "logprobs"};
  return Done{};
}

Generation::Generation(uint64_t id, GenerationRequest r, GenerationSink sink, const Tokenizer& tokenizer,
                       int capacity, std::optional<Constraint> constraint)
    : id(id),
      client_name(std::move(r.client)),
      sink_(std::move(sink)),
      text_(std::move(r.prompt)),
      prompt_(text_.size()),
      sampler_(std::move(r.sampler)),
      masked_(constraint ? std::make_shared<MaskedText>(*std::move(constraint)) : nullptr),
      // What ends a constrained text ends the answer; ignoring it puts that off.
      answer_(tokenizer, text_, std::move(r.stops), r.max_tokens, r.ignore_stop_tokens && !masked_),
      logprobs_(r.logprobs),
      capacity_(capacity),
      completes_(r.completes) {
  if (masked_) masked_->constraint.end_late(r.ignore_stop_tokens);
  for (Token t : r.written) {
    if (answer_.ended()) break;
    if (masked_ && !masked_->constraint.accept(t)) break;  // then pick() says why
    answer_.take(t, capacity_ - int(text_.size()));
    text_.push_back(t);
    sampler_.skip(1);
  }
}

bool Generation::looks_at_top(const Model& model) const {
  const int leading = sampler_.leading();
  return logprobs_ < 0 && !masked_ && leading > 0 && leading <= model.plan().max_top();
}

Wants Generation::wants(const Model& model, int* top) const {
  if (!looks_at_top(model)) return {.logits = true};
  *top = std::max(*top, sampler_.leading());
  return {.top = true};
}

int Generation::masked_left() const {
  return completes_ ? std::min(answer_.left(), capacity_ - int(text_.size())) : INT_MAX;
}

// With a grammar, a mask takes the logits of what must not follow to -infinity, for the choice only:
// probabilities are those that the model gave.
Result<int32_t> Generation::pick(Model& model, const StepOutput& out, size_t k) {
  if (masked_) {
    const auto allowed = masked_->constraint.allowed(masked_left());
    if (!allowed) return allowed.error();
    auto picked = sampler_.pick(out.logits(k), text_, *allowed);
    if (picked) masked_->constraint.follow(*picked);
    return picked;
  }
  if (!looks_at_top(model)) return sampler_.pick(out.logits(k), text_);
  const TopLogits all = out.top(k);
  const auto n = size_t(sampler_.leading());
  auto chosen = sampler_.pick_top(all.logits.first(n), all.ids.first(n));
  if (!chosen) return chosen.error();
  if (*chosen) return **chosen;
  auto logits = model.logits_of(k);  // pick() knows what is wrong with them
  if (!logits) return logits.error();
  return sampler_.pick(*logits, text_);
}

// In the order of the vocabulary and in double, so that the bits depend on nothing but the logits.
void Generation::add_probabilities(std::span<const float> logits, Token token) {
  const double sum = log_sum_exp(logits);
  told_.logprob = float(logits[size_t(token)] - sum);
  told_.top.clear();
  auto before = [&](Token a, Token b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  };
  auto& top = told_.top;
  for (Token t = 0; logprobs_ > 0 && t < int(logits.size()); t++) {
    if (int(top.size()) == logprobs_ && !before(t, top.back().token)) continue;
    if (int(top.size()) == logprobs_) top.pop_back();
    auto at = std::find_if(top.begin(), top.end(), [&](const auto& p) { return before(t, p.token); });
    top.insert(at, {t, 0});
  }
  for (TokenProbability& p : top) p.logprob = float(logits[size_t(p.token)] - sum);
}

Result<bool> Generation::take(Model& model, const StepOutput& out, size_t k, double at) {
  auto token = pick(model, out, k);
  if (!token) return token.error();
  told_.text = answer_.take(*token, capacity_ - int(text_.size()));
  if (answer_.ended() && answer_.finish() == Finish::StopToken) return false;
  if (logprobs_ >= 0) add_probabilities(out.logits(k), *token);
  text_.push_back(*token);
  told_.token = *token, told_.index = answer_.tokens() - 1;
  last_told = at;
  sink_.token(told_);
  return true;
}

int Generation::most_drafts() const { return std::min(answer_.left() - 1, capacity_ - int(text_.size())); }

GenerationEnd Generation::summary(Finish why) const {
  GenerationEnd end;
  end.finish = why;
  end.prompt_tokens = int(prompt_), end.shared_tokens = shared_tokens, end.tokens = answer_.tokens();
  end.drafted = drafted, end.accepted = accepted;
  return end;
}

void Generation::tell_end() {
  GenerationEnd end = summary(answer_.finish());
  end.text = answer_.rest(), end.stop = answer_.stop();
  sink_.end(end);
}

void Generation::tell_cancelled() { sink_.end(summary(Finish::Cancelled)); }

void Generation::tell_failed(const Error& why) {
  failed_ = true;
  sink_.failed(why);
}

}  // namespace gimbal
