#include "runtime/generate.h"

#include <climits>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {

const char* name_of(Finish f) {
  static constexpr const char* kNames[] = {"stop-token", "stop-string", "length", "context-full",
                                           "cancelled"};
  return kNames[int(f)];
}

Result<Generated> generate(Session& session, const Tokenizer& tokenizer, std::span<const Token> prompt,
                           const GenerateSettings& settings, const TextSink& sink) {
  if (auto ok = validate(settings.sampler); !ok) return ok.error();
  if (auto ok = validate_stops(settings.stops); !ok) return ok.error();
  if (prompt.empty())
    return Error{Code::Usage, "the prompt is empty, and the model asks for no token to begin with",
                 "give at least one token to start from"};
  if (int(prompt.size()) > session.room())
    return Error{
        Code::Usage,
        format("the prompt has {} tokens; the context has room for {}", prompt.size(), session.room()),
        "start with a larger 'context', or shorten the prompt", reason::kContextFull, "context"};

  Generated out;
  out.prompt_tokens = int(prompt.size());
  const DraftCounts before = settings.drafting ? settings.drafting->counts() : DraftCounts{};
  Picker picker(session, settings.sampler, settings.recover, settings.drafting, prompt);
  StreamDecoder decoder(tokenizer);
  // The text goes on from the prompt's: only the first token of a text loses the space that encoding added.
  for (Token t : prompt) decoder.push(t);
  StopMatcher stops(settings.stops);

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
  for (;;) {
    if (settings.max_tokens >= 0 && int(out.tokens.size()) >= settings.max_tokens) {
      out.finish = Finish::Length;
      break;
    }
    if (!picker.next()) return picker.next().error();
    const Token token = *picker.next();
    if (out.tokens.empty()) out.first_token_seconds = now() - begin;
    // A token that begins a text ends this one: models trained on texts in a row (stories260K) say it no
    // other way.
    if (!settings.ignore_stop_tokens && (tokenizer.is_stop(token) || token == tokenizer.bos())) {
      out.finish = Finish::StopToken;
      break;
    }
    out.tokens.push_back(token);
    StopMatcher::Output text = stops.push(decoder.push(token));
    if (!sink(text.text, token)) {
      out.finish = Finish::Cancelled;
      break;
    }
    if (text.stopped) {
      out.finish = Finish::StopString;
      break;
    }
    const int left = settings.max_tokens < 0 ? INT_MAX : settings.max_tokens - int(out.tokens.size());
    if (left == 0) continue;  // nothing more to compute
    if (picker.room() == 0) {
      out.finish = Finish::ContextFull;
      break;
    }
    if (auto ok = picker.go_on(left); !ok) return ok.error();
  }
  out.generate_seconds = now() - generation;
  if (settings.drafting)
    out.drafted_by = settings.drafting->name(), out.drafts = settings.drafting->counts() - before;
  if (out.finish != Finish::Cancelled) {
    // What was held back is certain now; an unfinished character at the end becomes U+FFFD.
    std::string rest = stops.push(decoder.finish()).text + stops.finish();
    if (!rest.empty()) sink(rest, out.tokens.empty() ? -1 : out.tokens.back());
  }
  return out;
}

}  // namespace gimbal
