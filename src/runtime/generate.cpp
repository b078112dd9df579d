#include "runtime/generate.h"

#include "base/clock.h"

namespace gimbal {

Result<Generated> generate(Session& session, const Tokenizer& tokenizer, std::span<const Token> prompt,
                           const GenerateSettings& settings, const TextSink& sink) {
  if (auto ok = validate(settings.sampler); !ok) return ok.error();
  if (auto ok = validate_stops(settings.stops); !ok) return ok.error();
  if (auto ok = check_prompt(prompt, session.room()); !ok) return ok.error();

  Generated out;
  out.prompt_tokens = int(prompt.size());
  const DraftCounts before = settings.drafting ? settings.drafting->counts() : DraftCounts{};
  Constraint* const constraint = settings.constraint;
  const size_t constrained = constraint ? constraint->position() : 0;
  if (constraint) constraint->end_late(settings.ignore_stop_tokens);
  Picker picker(session, settings.sampler, settings.recover, settings.drafting, prompt, constraint);
  Answer answer(tokenizer, prompt, settings.stops, settings.max_tokens,
                settings.ignore_stop_tokens && !constraint);

  // Batch by batch, so that a long prompt can be cancelled. Answers false when it was.
  auto compute_prompt = [&]() -> Result<bool> {
    size_t at = 0;
    while (settings.on_prompt && prompt.size() - at > size_t(session.batch())) {
      const auto batch = size_t(session.batch());
      if (auto ok = picker.read(prompt.subspan(at, batch), false); !ok) return ok.error();
      if (!settings.on_prompt(at += batch, prompt.size())) return false;
    }
    if (auto ok = picker.read(prompt.subspan(at), true); !ok) return ok.error();
    return !settings.on_prompt || settings.on_prompt(prompt.size(), prompt.size());
  };
  const double begin = now();
  auto whole = compute_prompt();
  if (!whole) return whole.error();
  out.prompt_seconds = now() - begin;
  if (!*whole) {
    out.finish = Finish::Cancelled;
    return out;
  }

  const double generation = now();
  while (!answer.ended()) {
    if (!picker.next()) return picker.next().error();
    const Token token = *picker.next();
    if (out.tokens.empty()) out.first_token_seconds = now() - begin;
    const std::string text = answer.take(token, picker.room());
    if (answer.ended() && answer.finish() == Finish::StopToken) break;
    out.tokens.push_back(token);
    if (!sink(text, token)) {
      out.finish = Finish::Cancelled;
      break;
    }
    if (answer.ended()) break;
    if (auto ok = picker.go_on(answer.left()); !ok) return ok.error();
  }
  out.generate_seconds = now() - generation;
  if (constraint) constraint->rewind(constrained + out.tokens.size());
  if (settings.drafting)
    out.drafted_by = settings.drafting->name(), out.drafts = settings.drafting->counts() - before;
  if (out.finish != Finish::Cancelled) {
    out.finish = answer.finish();
    const std::string rest = answer.rest();
    if (!rest.empty()) sink(rest, out.tokens.empty() ? -1 : out.tokens.back());
  }
  return out;
}

}  // namespace gimbal
