// The messages of a chat, and edits by its user.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_prompt.h"

namespace gimbal {

class Conversation {
 public:
  const std::vector<ChatMessage>& messages() const { return messages_; }
  std::string system() const;         // empty: no system prompt
  void set_system(std::string text);  // empty: none

  void ask(std::string text) { messages_.push_back({"user", std::move(text)}); }
  void answer(std::string text, std::string reasoning) {
    messages_.push_back({"assistant", std::move(text), std::move(reasoning)});
  }
  bool waits() const { return !messages_.empty() && messages_.back().role == "user"; }

  void clear();                       // all but the system prompt
  std::optional<std::string> undo();  // removes the last question and its answer; returns the question
  bool forget_answer();               // of the last question, which is then unanswered again
  // Drops the oldest question and its answer. False if only the last question is left.
  bool drop_oldest();

  // {"messages": [{"role", "content", "reasoning_content"}]}
  std::string to_json() const;
  // Errors: Usage, with the fault.
  static Result<Conversation> from_json(const std::string& text);

 private:
  size_t first() const { return !messages_.empty() && messages_[0].role == "system" ? 1 : 0; }
  std::vector<ChatMessage> messages_;
};

}  // namespace gimbal
