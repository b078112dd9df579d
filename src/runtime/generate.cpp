#include "runtime/generate.h"

#include <chrono>

#include "base/format.h"

namespace gimbal {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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
  std::vector<Token> history(prompt.begin(), prompt.end());
  Sampler sampler(settings.sampler);
  StreamDecoder decoder(tokenizer);
  // The text goes on from the prompt's: only the first token of a text loses the space that encoding added.
  for (Token t : prompt) decoder.push(t);
  StopMatcher stops(settings.stops);

  Result<int32_t> picked = 0;
  const Session::Sink pick = [&](size_t, std::span<const float> logits) {
    picked = sampler.pick(logits, history);
  };
  // Where a few of the logits are all that sampling looks at, only they come from the device.
  auto compute = [&](std::span<const Token> tokens) -> Status {
    const int leading = sampler.leading();
    if (!leading || leading > session.max_top()) return session.advance(tokens, Session::Wanted::Last, pick);
    auto first = session.advance_top(tokens, leading);
    if (!first) return first.error();
    auto chosen = sampler.pick_top(first->logits, first->ids);
    if (chosen && !*chosen) {  // pick() knows what is wrong with them
      auto all = session.all_logits();
      if (!all) return all.error();
      picked = sampler.pick(*all, history);
    } else if (chosen) {
      picked = **chosen;
    } else {
      picked = chosen.error();
    }
    return Done{};
  };
  auto compute_somewhere = [&](std::span<const Token> tokens, Session::Wanted wanted) -> Status {
    auto compute_all = [&](std::span<const Token> some) {
      return wanted == Session::Wanted::Last ? compute(some) : session.advance(some, wanted, {});
    };
    const int before = session.position();
    auto ok = compute_all(tokens);
    if (ok || ok.error().code != Code::DeviceLost || !settings.recover) return ok;
    if (auto moved = settings.recover(session, ok.error()); !moved) return moved;
    return compute_all(tokens.subspan(size_t(session.position() - before)));
  };
  // Batch by batch, so that a long prompt can be cancelled. Answers false when it was.
  auto compute_prompt = [&]() -> Result<bool> {
    size_t at = 0;
    while (settings.on_prompt && prompt.size() - at > size_t(session.batch())) {
      const auto batch = size_t(session.batch());
      if (auto ok = compute_somewhere(prompt.subspan(at, batch), Session::Wanted::None); !ok)
        return ok.error();
      if (!settings.on_prompt(at += batch, prompt.size())) return false;
    }
    if (auto ok = compute_somewhere(prompt.subspan(at), Session::Wanted::Last); !ok) return ok.error();
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
    if (!picked) return picked.error();
    const Token token = *picked;
    if (out.tokens.empty()) out.first_token_seconds = now() - begin;
    // A token that begins a text ends this one: models trained on texts in a row (stories260K) say it no
    // other way.
    if (!settings.ignore_stop_tokens && (tokenizer.is_stop(token) || token == tokenizer.bos())) {
      out.finish = Finish::StopToken;
      break;
    }
    out.tokens.push_back(token);
    history.push_back(token);
    StopMatcher::Output text = stops.push(decoder.push(token));
    if (!sink(text.text, token)) {
      out.finish = Finish::Cancelled;
      break;
    }
    if (text.stopped) {
      out.finish = Finish::StopString;
      break;
    }
    if (settings.max_tokens >= 0 && int(out.tokens.size()) >= settings.max_tokens)
      continue;  // nothing more to compute
    if (session.room() == 0) {
      out.finish = Finish::ContextFull;
      break;
    }
    if (auto ok = compute_somewhere(std::span(&token, 1), Session::Wanted::Last); !ok) return ok.error();
  }
  out.generate_seconds = now() - generation;
  if (out.finish != Finish::Cancelled) {
    // What was held back is certain now; an unfinished character at the end becomes U+FFFD.
    std::string rest = stops.push(decoder.finish()).text + stops.finish();
    if (!rest.empty()) sink(rest, out.tokens.empty() ? -1 : out.tokens.back());
  }
  return out;
}

}  // namespace gimbal
