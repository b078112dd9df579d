// Splits a streaming answer into text, reasoning and tool calls.
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

  // Parses answers to `task`, starting at the prompt's end. `tokenizer` must outlive it.
  ReplyParser(const Tokenizer& tokenizer, const ChatTask& task);

  // Takes the next piece and the token that completed it. Holds back a possible part of a mark.
  Part push(std::string_view text, Token token);
  Part finish(std::string_view text);  // the last piece; also returns the held-back text

  // The only call that was requested is complete: later text is dropped.
  bool enough() const { return one_call_ && calls_ > 0; }

 private:
  void take(std::string_view text, Token token, Part& to);
  void add(ReasoningSplitter::Part, Part& to);
  void end_marks(Part& to);
  void pass(ToolCallSplitter::Pieces, Part& to);
  Part& counted(Part&);

  const Tokenizer& tokenizer_;
  const bool splits_calls_, one_call_, keeps_reasoning_;
  bool between_marks_ = false;  // kept reasoning that has no end yet
  ReasoningSplitter reasoning_;
  ToolCallSplitter call_splitter_;
  size_t calls_ = 0;
};

// A whole answer as text, split into content, reasoning and tool calls.

// `inside`: the answer begins within the reasoning. The control tokens that divide messages (gpt-oss) count
// where they stand in the text, as a model's output has them.
ReplyParser::Part parse_reply(std::string_view text, const ToolCallFormat&, bool inside);

}  // namespace gimbal
