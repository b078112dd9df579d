// The messages of a chat, and what its user can do to them.
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
  std::string system() const;         // empty where there is none
  void set_system(std::string text);  // empty: none

  void ask(std::string text) { messages_.push_back({"user", std::move(text)}); }
  void answer(std::string text, std::string reasoning) {
    messages_.push_back({"assistant", std::move(text), std::move(reasoning)});
  }
  bool waits() const { return !messages_.empty() && messages_.back().role == "user"; }

  void clear();                       // all but the system prompt
  std::optional<std::string> undo();  // the last question and its answer; gives back the question
  bool forget_answer();               // of the last question, which then waits again
  // The oldest question and what follows up to the next one. False when only the last question is left.
  bool drop_oldest();

  // {"messages": [{"role", "content", "reasoning_content"}]}
  std::string to_json() const;
  // Errors: Usage, saying what is wrong with it.
  static Result<Conversation> from_json(const std::string& text);

 private:
  size_t first() const { return !messages_.empty() && messages_[0].role == "system" ? 1 : 0; }
  std::vector<ChatMessage> messages_;
};

}  // namespace gimbal
