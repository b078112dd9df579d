#include "runtime/text_state.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/likelihood.h"
#include "runtime/model.h"
#include "runtime/top_logits.h"

namespace gimbal {

Status check_text(const TextSettings& s, const InputView& prompt, int vocabulary, int width, int room) {
  if (auto ok = validate(s.sampler, size_t(vocabulary)); !ok) return ok;
  if (auto ok = validate_stops(s.stops); !ok) return ok;
  if (auto ok = check_prompt(prompt.tokens(), room); !ok) return ok;
  if (auto ok = check_inputs(prompt, vocabulary, width); !ok) return ok;
  if (s.logprobs > vocabulary)
    return Error{Code::Usage,
                 format("'logprobs' asks for {} tokens, and the vocabulary has {}", s.logprobs, vocabulary),
                 "ask for fewer", reason::kOutOfRange, "logprobs"};
  return Done{};
}

TextState::TextState(Inputs text, size_t begin, TextSettings s, const Tokenizer* tokenizer, int capacity,
                     Constraint* constraint)
    : text_(std::move(text)),
      begin_(begin),
      prompt_(text_.size()),
      sampler_(std::move(s.sampler), tokenizer),
      constraint_(constraint),
      reasoning_(std::move(s.reasoning), constraint ? nullptr : tokenizer),
      // A token that ends a constrained text ends the answer; ignoring it delays that.
      answer_(tokenizer, std::span(text_.tokens()).subspan(begin), std::move(s.stops), s.max_tokens,
              s.ignore_stop_tokens && !constraint),
      logprobs_(s.logprobs),
      capacity_(capacity),
      completes_(s.completes),
      certify_(s.certify),
      scored_(prompt_) {
  if (constraint_) constraint_->end_late(s.ignore_stop_tokens);
}

std::string TextState::resume(std::span<const Token> written, std::optional<double> memory) {
  std::string text;
  if (!written.empty() && memory) sampler_.remember(*memory);
  for (Token t : written) {
    if (answer_.ended()) break;
    if (constraint_ && !constraint_->accept(t)) break;  // next() reports why
    text += answer_.take(t, capacity_ - int(text_.size()));
    text_.push(t);
    if (!reasoning_.forced()) sampler_.skip(1);
    reasoning_.take(t);
  }
  return text;
}

void TextState::score_prompt(int sent) {
  scored_ = std::min(prompt_, begin_ + 1 + size_t(sent));
  scores_stop_ = begin_ + size_t(sent) < prompt_;
}

Status TextState::score_next(std::span<const float> logits) {
  if (auto ok = check_logits(logits); !ok) return ok;
  event_.text.clear();
  event_.token = text_[scored_].token, event_.index = int(scored_ - begin_);
  add_probabilities(logits, event_.token);
  scored_++;
  return Done{};
}

int TextState::most_drafts() const { return std::min(answer_.left() - 1, capacity_ - int(text_.size())); }

int TextState::constrained_left() const {
  return completes_ ? std::min(answer_.left(), capacity_ - int(text_.size())) : INT_MAX;
}

// A device finds a few of the largest logits itself; some sampling settings need no others.
bool TextState::needs_top_only(const Model& model) const {
  return logprobs_ < 0 && !constraint_ && sampler_.leading() > 0 && wanted_top() <= model.plan().max_top();
}

int TextState::wanted_top() const { return std::max(sampler_.leading(), certify_ ? kDigestTop : 0); }

TextRows TextState::add_rows(const Model& model, Sequence& s, int rows, std::span<const Token> drafts,
                             Batch& batch) {
  const auto at = size_t(s.computed());
  const bool whole = at + size_t(rows) == text_.size();
  TextRows added{batch.rows.size(), rows + int(drafts.size()), int(drafts.size())};
  for (size_t i = at; i < at + size_t(rows); i++) {
    const bool scores = i + 1 >= scored_ && i + 1 < prompt_;
    batch.rows.push_back({&s, text_[i], int32_t(i), {.logits = scores}});
    added.scored += scores;
  }
  for (Token t : drafts) batch.rows.push_back({&s, t, batch.rows.back().position + 1, {}});
  drafts_.assign(drafts.begin(), drafts.end());
  if (!whole) return added;
  added.results = 1 + added.drafts;
  const bool top = needs_top_only(model);
  if (top) batch.top = std::max(batch.top, wanted_top());
  for (auto row = batch.rows.end() - added.results; row != batch.rows.end(); row++)
    row->wants = {.logits = !top, .top = top};
  return added;
}

// The constraint masks logits for the choice only: probabilities are those of the model.
Result<Token> TextState::next(std::span<const float> logits) {
  if (const auto forced = reasoning_.forced()) return *forced;
  const auto history = std::span(tokens()).subspan(begin_);
  if (!constraint_) return sampler_.pick(logits, history);
  const auto allowed = constraint_->allowed(constrained_left());
  if (!allowed) return allowed.error();
  auto picked = sampler_.pick(logits, history, *allowed);
  if (picked) constraint_->follow(*picked);
  return picked;
}

Result<Token> TextState::next(Model& model, const StepOutput& out, size_t k) {
  if (!needs_top_only(model)) return next(out.logits(k));
  if (const auto forced = reasoning_.forced()) return *forced;
  const auto history = std::span(tokens()).subspan(begin_);
  const TopLogits all = out.top(k);
  const auto n = size_t(sampler_.leading());
  auto chosen = sampler_.pick_top(all.logits.first(n), all.ids.first(n));
  if (!chosen) return chosen.error();
  if (*chosen) return **chosen;
  auto logits = model.logits_of(k);  // pick() reports their faults
  if (!logits) return logits.error();
  return sampler_.pick(*logits, history);
}

// In the order of the vocabulary and in double, so that the bits depend on nothing but the logits.
void TextState::add_probabilities(std::span<const float> logits, Token token) {
  const double sum = log_sum_exp(logits);
  event_.logprob = float(logits[size_t(token)] - sum);
  event_.top.clear();
  auto before = [&](Token a, Token b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  };
  auto& top = event_.top;
  for (Token t = 0; logprobs_ > 0 && t < int(logits.size()); t++) {
    if (int(top.size()) == logprobs_ && !before(t, top.back().token)) continue;
    if (int(top.size()) == logprobs_) top.pop_back();
    auto at = std::find_if(top.begin(), top.end(), [&](const auto& p) { return before(t, p.token); });
    top.insert(at, {t, 0});
  }
  for (TokenProbability& p : top) p.logprob = float(logits[size_t(p.token)] - sum);
}

Result<std::string> TextState::digest(Model& model, const StepOutput& out, size_t k) const {
  const auto index = int(text_.size() - prompt_);
  if (!needs_top_only(model)) return row_digest(index, out.logits(k));
  if (index % kDigestFull != 0) return row_digest(index, out.top(k));
  auto all = model.logits_of(k);
  if (!all) return all.error();
  return row_digest(index, out.top(k), *all);
}

Result<bool> TextState::take(Model& model, const StepOutput& out, size_t k) {
  const auto token = next(model, out, k);
  if (!token) return token.error();
  if (certify_) {
    auto row = digest(model, out, k);
    if (!row) return row.error();
    event_.row = std::move(*row);
  }
  return add(*token, logprobs_ >= 0 ? out.logits(k) : std::span<const float>());
}

Result<bool> TextState::take(std::span<const float> logits) {
  const auto token = next(logits);
  if (!token) return token.error();
  return add(*token, logits);
}

// False: the answer ended with a token outside its text. `logits`: for log-probabilities.
bool TextState::add(Token token, std::span<const float> logits) {
  reasoning_.take(token);
  event_.text = answer_.take(token, capacity_ - int(text_.size()));
  if (answer_.ended() && answer_.finish() == Finish::StopToken) {
    if (scores_stop_) {
      add_probabilities(logits, token);
      event_.token = token, event_.index = int(text_.size() - begin_);
    }
    return false;
  }
  if (logprobs_ >= 0) add_probabilities(logits, token);
  text_.push(token);
  event_.memory = sampler_.memory();
  event_.token = token, event_.index = answer_.tokens() - 1;
  return true;
}

}  // namespace gimbal
