// The text of an answer, token by token, and its end; the same for one text alone and for many.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/stop_matcher.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

enum class Finish { StopToken, StopString, Length, ContextFull, Cancelled };
const char* name_of(Finish);  // "stop-token", "stop-string", "length", "context-full", "cancelled"

// Checks that a prompt fits into `room` positions of a context. Errors: Usage if it is empty or too long
// (context-full, with both numbers).
Status check_prompt(std::span<const Token> prompt, int room);

class Answer {
 public:
  // Embeddings of the prompt (kNoToken) have no text. The tokenizer outlives it; nullptr: tokens have no
  // text, and none ends the answer. `max_tokens` of the answer; -1: until the model stops or the context is
  // full.
  Answer(const Tokenizer* tokenizer, std::span<const Token> prompt, std::vector<std::string> stops,
         int max_tokens, bool ignore_stop_tokens);

  // Adds the next token; returns the text finalized by it: complete UTF-8, no part of a stop string.
  // `room`: remaining positions of the context. Do not call after the end.
  std::string take(Token token, int room);

  bool ended() const { return ended_; }
  Finish finish() const { return finish_; }          // once ended
  int tokens() const { return tokens_; }             // without the stop token
  int left() const;                                  // most tokens that may follow
  const std::string& stop() const { return stop_; }  // the stop string that ended it; else empty
  // The held-back text, once ended; an incomplete character becomes U+FFFD.
  std::string rest();

 private:
  void end(Finish why) { ended_ = true, finish_ = why; }

  const Tokenizer* const tokenizer_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  const int max_tokens_;
  const bool ignore_stop_tokens_;
  int tokens_ = 0;
  bool ended_ = false;
  Finish finish_ = Finish::Length;
  std::string stop_;
};

}  // namespace gimbal
