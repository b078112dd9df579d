// From a prompt to text, one text at a time: what every front end shares that keeps a conversation in a
// session. Many texts at once: scheduler/serving.h.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/drafting.h"
#include "runtime/session.h"
#include "runtime/text_state.h"

namespace gimbal {

struct GenerateSettings : TextSettings {
  // Of a model that was loaded with RunOptions::drafts. They change the speed only, never the text. Outlives
  // the call; nullptr: none.
  Drafting* drafting = nullptr;
  // Which texts may be generated. Outlives the call, and is where the text begins; what is generated becomes
  // part of it. A token that ends the text ends it also with ignore_stop_tokens, which only puts it off as
  // long as the grammar allows more. nullptr: any text.
  Constraint* constraint = nullptr;
  // Called between the batches of the prompt, and after the last one, with the tokens of the prompt that are
  // computed and their number in all. Returning false cancels: what was computed stays in the session.
  std::function<bool(size_t done, size_t total)> on_prompt;
};

struct Generated {
  std::vector<Token> tokens;  // without the stop token
  // With TextSettings::logprobs >= 0: of each of `tokens`, and of the most likely ones in its place.
  std::vector<float> logprobs;
  std::vector<std::vector<TokenProbability>> top;
  Finish finish = Finish::Length;
  int prompt_tokens = 0;
  double prompt_seconds = 0, generate_seconds = 0,
         first_token_seconds = 0;  // wall clock; the first counts from the call
  std::string drafted_by;          // Drafting::name(); empty: nothing
  DraftCounts drafts = {};
};

// Text that is certain (whole characters, no part of a stop string), and the token that completed it. May be
// called with empty text. Returning false cancels.
using TextSink = std::function<bool(std::string_view text, Token token)>;

// Computes `prompt` after the session's inputs, then generates. `tokenizer`: nullptr for tokens alone,
// without text and without tokens that end it. A lost device: Session::on_device_lost(). Errors: those of
// check_text(), the session, the sampler and the constraint. The sink has received what was generated before
// an error. The last token may not be in the session yet, because no result was needed after it: the next
// prompt begins with the tokens that session.position() does not cover.
Result<Generated> generate(Session& session, const Tokenizer* tokenizer, const InputView& prompt,
                           const GenerateSettings& settings, const TextSink& sink);
inline Result<Generated> generate(Session& session, const Tokenizer& tokenizer, const InputView& prompt,
                                  const GenerateSettings& settings, const TextSink& sink) {
  return generate(session, &tokenizer, prompt, settings, sink);
}

}  // namespace gimbal
