// Splits the text of an answer into text, reasoning and calls of tools, while it streams.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_request.h"
#include "chat/reasoning.h"

namespace gimbal {

class ReplyParser {
 public:
  struct Part {
    std::string text = {}, reasoning = {};
    std::vector<ToolCall> calls = {};
  };

  // Reads answers to `task` from where the prompt ends. `tokenizer` outlives it.
  ReplyParser(const Tokenizer& tokenizer, const ChatTask& task);

  // The next piece of the answer and the token that completed it. What may be part of a mark is held back.
  Part push(std::string_view text, Token token);
  Part finish(std::string_view text);  // the last piece, and what was held back

  // The one call that was wanted is there: what follows is dropped.
  bool enough() const { return one_call_ && calls_ > 0; }

 private:
  void take(std::string_view text, Token token, Part& to);
  void add(ReasoningSplitter::Part, Part& to);
  void pass(ToolCallSplitter::Pieces, Part& to);
  Part& counted(Part&);

  const Tokenizer& tokenizer_;
  const bool splits_calls_, one_call_;
  ReasoningSplitter reasoning_;
  ToolCallSplitter call_splitter_;
  size_t calls_ = 0;
};

}  // namespace gimbal
