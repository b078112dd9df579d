// Ends a model's reasoning after so many tokens: its closing mark replaces the model's next tokens, and the
// answer continues behind it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

struct ReasoningLimit {
  int tokens = -1;      // of the reasoning; -1: no limit
  bool inside = false;  // the answer begins within the reasoning
  // What begins and ends the reasoning in the model's text, and the text that is put there to end it. Control
  // tokens are written by their names.
  std::string begin = {}, end = {}, finish = {};
};

// A function of the tokens of the answer alone, so the same with drafts and behind a lost engine.
class ReasoningLimiter {
 public:
  // `tokenizer`: must outlive it; nullptr: there is no text, and no limit.
  ReasoningLimiter(ReasoningLimit, const Tokenizer* tokenizer);

  // The token that must come next; std::nullopt: the model's own.
  std::optional<Token> forced() const;
  void take(Token);  // the next token of the answer

 private:
  void check();

  ReasoningLimit limit_;
  const Tokenizer* tokenizer_;
  enum class State : unsigned char { Before, Inside, After } state_;
  int count_ = 0;              // of the reasoning
  std::string tail_;           // text that may be a part of a mark
  std::vector<Token> finish_;  // once the limit is reached
  size_t put_ = 0;             // so many of them came
};

}  // namespace gimbal
