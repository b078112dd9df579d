// Generates text from a prompt, one text at a time, for all front ends that keep a conversation in a
// session. Many texts at once: scheduler/scheduler.h.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/drafting.h"
#include "runtime/session.h"
#include "runtime/text_state.h"

namespace gimbal {

struct GenerateSettings : TextSettings {
  // For a model loaded with RunOptions::drafts. They change the speed only, never the text. Outlives the
  // call; nullptr: none.
  Drafting* drafting = nullptr;
  // The grammar of the text, at the text's beginning; generate() advances it. Outlives the call. A stop
  // token ends the text even with ignore_stop_tokens, which only delays it while the grammar allows other
  // tokens. nullptr: any text.
  Constraint* constraint = nullptr;
  // The first tokens of the answer, which the caller has already; the answer continues exactly behind them.
  // Generated and the sink get the tokens behind them only.
  std::vector<Token> written = {};
  // Called between the batches of the prompt, and after the last one, with the tokens of the prompt that
  // are computed and their number in all. Return false to cancel: the computed tokens stay in the session.
  std::function<bool(size_t done, size_t total)> on_prompt;
};

struct Generated {
  std::vector<Token> tokens;  // without the stop token
  // With TextSettings::logprobs >= 0: of each of `tokens`, and of the most likely ones in its place.
  std::vector<float> logprobs;
  std::vector<std::vector<TokenProbability>> top;
  // With TextSettings::certify: the digests of the rows of logits, also of the one that chose a stop token.
  std::vector<std::string> rows;
  Finish finish = Finish::Length;
  int prompt_tokens = 0;  // computed: without those that the session held
  // Of the prompt, from the prefix store; the name of their last page, which depends on all pages before.
  int stored_tokens = 0;
  std::string stored_page = {};
  double stored_seconds = 0;  // of looking them up and reading them; a part of first_token_seconds
  double prompt_seconds = 0, generate_seconds = 0,
         first_token_seconds = 0;  // wall clock; the first counts from the call
  std::string drafted_by;          // Drafting::name(); empty: nothing
  DraftCounts drafts = {};
};

// Receives finalized text (complete UTF-8, no part of a stop string), and the token that completed it. The
// text may be empty. Return false to cancel.
using TextSink = std::function<bool(std::string_view text, Token token)>;

// Computes `prompt` after the session's inputs, then generates. `tokenizer`: nullptr for tokens alone,
// without text and without stop tokens. A lost device: Session::on_device_lost(). Errors: those of
// check_text(), the session, the sampler and the constraint. Before an error, the sink has received the
// text so far. The last token may not be in the session yet, because no result was needed after it: the
// next prompt begins with the tokens that session.position() does not cover.
Result<Generated> generate(Session& session, const Tokenizer* tokenizer, const InputView& prompt,
                           const GenerateSettings& settings, const TextSink& sink);
inline Result<Generated> generate(Session& session, const Tokenizer& tokenizer, const InputView& prompt,
                                  const GenerateSettings& settings, const TextSink& sink) {
  return generate(session, &tokenizer, prompt, settings, sink);
}
// The same for a whole text: the session keeps its common beginning with `text`, and the rest is computed.
// Penalties count all of `text`, so the answer does not depend on earlier contents of the session.
Result<Generated> generate_from_text(Session& session, const Tokenizer& tokenizer, const InputView& text,
                                     const GenerateSettings& settings, const TextSink& sink);

}  // namespace gimbal
