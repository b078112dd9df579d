// From a prompt to text: the loop over picker, decoder and stop strings that every front end
// shares.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/answer.h"
#include "runtime/picker.h"

namespace gimbal {

struct GenerateSettings {
  SamplerSettings sampler;
  std::vector<std::string> stops;
  int max_tokens = -1;  // to generate; -1: until the model stops or the context is full
  bool ignore_stop_tokens = false;
  Recover recover;
  // Of a model that was loaded with RunOptions::drafts. They change the speed only, never the text. Outlives
  // the call; nullptr: none.
  Drafting* drafting = nullptr;
  // Which texts may be generated. Outlives the call, and is where the text begins; what is generated becomes
  // part of it. A token that ends the text ends it also with ignore_stop_tokens, which only puts it off as
  // long as the grammar goes on. nullptr: any text.
  Constraint* constraint = nullptr;
  // Called between the batches of the prompt, and after the last one, with the tokens of the prompt that are
  // computed and their number in all. Returning false cancels: what was computed stays in the session.
  std::function<bool(size_t done, size_t total)> on_prompt;
};

struct Generated {
  std::vector<Token> tokens;  // without the stop token
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

// Computes `prompt` after what the session holds, then generates. Errors: Usage when the prompt is empty or
// does not fit in the context (says both numbers); those of the session and the sampler. What was generated
// before an error was given to the sink. The last token may not be in the session yet: nothing was asked
// after it. A caller that goes on begins its next prompt with the tokens that session.position() does not
// cover.
Result<Generated> generate(Session& session, const Tokenizer& tokenizer, std::span<const Token> prompt,
                           const GenerateSettings& settings, const TextSink& sink);

}  // namespace gimbal
