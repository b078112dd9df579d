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
        "start with a larger --ctx, or shorten the prompt"};

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
  const double begin = now();
  auto ok = session.advance(prompt, Session::Wanted::Last, pick);
  if (!ok) return ok.error();
  out.prompt_seconds = now() - begin;

  const double generation = now();
  for (;;) {
    if (settings.most_tokens >= 0 && int(out.tokens.size()) >= settings.most_tokens) {
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
    if (settings.most_tokens >= 0 && int(out.tokens.size()) >= settings.most_tokens)
      continue;  // nothing more to compute
    if (session.room() == 0) {
      out.finish = Finish::ContextFull;
      break;
    }
    if (ok = session.advance(std::span(&token, 1), Session::Wanted::Last, pick); !ok) return ok.error();
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
