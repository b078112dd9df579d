#include "runtime/generate.h"

#include <algorithm>

#include "base/clock.h"

namespace gimbal {
namespace {

// The steps of one text.
class Loop {
 public:
  // `begin`: of the text that penalties count, in the session.
  Loop(Session& session, const Tokenizer* tokenizer, const InputView& prompt, size_t begin,
       const GenerateSettings& s, const TextSink& sink)
      : session_(session),
        settings_(s),
        sink_(sink),
        drafting_(s.drafting),
        held_(session.position()),
        prompt_tokens_(prompt.size() + s.written.size()),
        text_(joined(session.inputs(), prompt), begin, s, tokenizer, session.model().context(),
              s.constraint) {
    session_.watch(drafting_ ? drafting_->watcher() : nullptr);
    text_.resume(s.written, {});
  }
  ~Loop() { session_.watch(nullptr); }

  // Computes the prompt, then picks token after token. False: cancelled.
  Result<bool> run(Generated& out) {
    const double start = now();
    auto emit = [&](const TokenEvent& t) {
      if (out.tokens.empty()) out.first_token_seconds = now() - start;
      out.tokens.push_back(t.token);
      if (settings_.logprobs >= 0) out.logprobs.push_back(t.logprob), out.top.push_back(t.top);
      if (settings_.certify) out.rows.push_back(t.row);
      return going_ = sink_(t.text, t.token);
    };
    while (going_ && (in_prompt_ || !text_.ended())) {
      const int missing = text_.missing(session_.sequence());
      const auto at = size_t(session_.sequence().computed());
      const int rows =
          whole_rows(text_.inputs(), at,
                     in_prompt_ ? session_.rows_of_step(missing) : std::min(missing, session_.batch()));
      if (rows == 0) return too_long_for_a_step(text_.inputs(), at, session_.batch());
      const auto drafts = propose(rows, missing);
      if (!drafts) return drafts.error();
      const double begun = now();
      const auto step = session_.step(text_, rows, *drafts, part_);
      if (!step) {
        if (auto moved = session_.recover(step.error()); !moved) return moved.error();
        continue;
      }
      const double seconds = now() - begun;
      const bool draftable = !in_prompt_;
      if (in_prompt_) {
        going_ = emit_progress();
        in_prompt_ = rows < missing;
        if (in_prompt_ && going_) continue;
        out.prompt_seconds = now() - start;
        if (going_ && drafting_)
          if (auto ok = drafting_->begin(text_.tokens()); !ok) return ok.error();
      }
      if (rows == missing && going_ && !text_.ended())
        if (auto ok = pick(*step, draftable ? seconds : 0, emit); !ok) return ok.error();
    }
    out.generate_seconds = now() - start - out.prompt_seconds;
    return going_;
  }

  TextState& text() { return text_; }

 private:
  static Inputs joined(Inputs all, const InputView& more) {
    all.append(more);
    return all;
  }

  // False: cancel.
  bool emit_progress() const {
    const int done = std::max(0, session_.sequence().computed() - held_);
    return !settings_.on_prompt || settings_.on_prompt(size_t(done), prompt_tokens_);
  }

  // Drafts after the answer; none after the prompt, nor in a step that does not reach the end of the text.
  Result<std::span<const Token>> propose(int rows, int missing) {
    if (in_prompt_ || !drafting_ || rows < missing) return std::span<const Token>();
    const RunOptions& o = session_.model().plan().options;
    const int most = std::min({o.drafts, o.logit_rows - 1, session_.batch() - rows, text_.most_drafts()});
    auto drafts = drafting_->propose(text_.tokens(), most, {.rows = missing - 1});
    if (drafts && !drafts->empty()) session_.mark();
    return drafts;
  }

  // `seconds`: of the step; 0: it could not have drafts.
  template <class Emit>
  Status pick(const StepOutput& step, double seconds, Emit emit) {
    const auto picked = session_.pick(text_, step, part_, emit);
    if (drafting_ && seconds > 0) drafting_->computed(part_.rows, 1 + picked.right, seconds);
    if (picked.ok) return Done{};
    if (auto moved = session_.recover(picked.ok.error()); !moved) return moved;
    session_.rewind(int(text_.tokens().size()) - 1);  // the lost result is computed once more
    return Done{};
  }

  Session& session_;
  const GenerateSettings& settings_;
  const TextSink& sink_;
  Drafting* const drafting_;
  const int held_;  // tokens before the prompt
  const size_t prompt_tokens_;
  TextState text_;
  TextRows part_;
  bool in_prompt_ = true, going_ = true;
};

Result<Generated> generate_from(size_t begin, Session& session, const Tokenizer* tokenizer,
                                const InputView& prompt, const GenerateSettings& settings,
                                const TextSink& sink) {
  const ModelPlan& plan = session.model().plan();
  if (auto ok = check_text(settings, prompt, plan.config.vocabulary, plan.embedding_width(), session.room());
      !ok)
    return ok.error();
  Generated out;
  out.prompt_tokens = int(prompt.size());
  const DraftCounts before = settings.drafting ? settings.drafting->counts() : DraftCounts{};
  Constraint* const constraint = settings.constraint;
  const size_t constrained = constraint ? constraint->position() : 0;
  Loop loop(session, tokenizer, prompt, begin, settings, sink);
  const auto whole = loop.run(out);
  if (constraint) constraint->rewind(constrained + settings.written.size() + out.tokens.size());
  if (!whole) return whole.error();
  if (settings.drafting)
    out.drafted_by = settings.drafting->name(), out.drafts = settings.drafting->counts() - before;
  if (!*whole) {
    out.finish = Finish::Cancelled;
    return out;
  }
  out.finish = loop.text().answer().finish();
  if (settings.certify && out.finish == Finish::StopToken) out.rows.push_back(loop.text().row());
  const std::string rest = loop.text().answer().rest();
  if (!rest.empty()) sink(rest, out.tokens.empty() ? -1 : out.tokens.back());
  return out;
}

}  // namespace

Result<Generated> generate(Session& session, const Tokenizer* tokenizer, const InputView& prompt,
                           const GenerateSettings& settings, const TextSink& sink) {
  return generate_from(session.tokens().size(), session, tokenizer, prompt, settings, sink);
}

Result<Generated> generate_from_text(Session& session, const Tokenizer& tokenizer, const InputView& text,
                                     const GenerateSettings& settings, const TextSink& sink) {
  const double begin = now();
  const auto stored = session.take_stored(text);
  if (!stored) return stored.error();
  const double seconds = now() - begin;
  const auto held = size_t(session.keep_common(text));
  auto out = generate_from(0, session, &tokenizer, text.subview(held), settings, sink);
  session.finish_stored();
  if (out) out->stored_seconds = seconds, out->first_token_seconds += out->tokens.empty() ? 0 : seconds;
  if (out && *stored) out->stored_tokens = *stored, out->stored_page = session.last_stored_page();
  return out;
}

}  // namespace gimbal
