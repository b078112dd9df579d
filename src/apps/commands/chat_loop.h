// A conversation on a terminal or through pipes: questions, commands such as /undo, and answers as they
// come. Where the answers come from is the caller's.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/line_editor.h"
#include "chat/conversation.h"

namespace gimbal {

// Writes `reasoning` and then `answer`; false ends the answer.
using ChatSink = std::function<bool(std::string_view reasoning, std::string_view answer)>;

struct ChatReply {
  std::string text, reasoning;
  bool stopped = false;                              // by the user, before its first token
  std::string stats = {};                            // lines for /stats
  std::vector<std::string> before = {}, after = {};  // notes that precede and follow the statistics
};

// Answers the last question of a conversation.
class ChatAnswers {
 public:
  virtual ~ChatAnswers() = default;
  virtual Result<ChatReply> answer(Conversation&, const ChatSink&) = 0;
  virtual std::string explanation() const = 0;  // lines for /explain
  // The mark of a picture in a message. Errors: those of reading it; Usage if the model does not see.
  virtual Result<std::string> picture(const std::string& file);
};

struct ChatLook {
  bool shows_reasoning = true;
  bool stats = false, wrap = true;
};

class ChatLoop {
 public:
  ChatLoop(ChatAnswers& answers, ChatLook look, const std::string& system)
      : answers_(answers), look_(std::move(look)) {
    conversation_.set_system(system);
  }
  // Puts these marks of pictures before the next question.
  void add_pictures(const std::string& marks) { pictures_ += marks; }
  // Until the user leaves. Returns the exit code.
  int run();
  // Writes one answer; false on failure.
  bool ask(std::string question);

 private:
  std::optional<std::string> read_message(LineEditor&);
  bool answer();
  void command(const std::string& line);
  void system(const std::string& text);
  void undo();
  void picture(const std::string& path);
  void file(bool saves, const std::string& path);

  ChatAnswers& answers_;
  const ChatLook look_;
  InterruptGuard guard_;
  Conversation conversation_;
  std::string last_stats_, pictures_;  // pictures_: marks for the next question
};

}  // namespace gimbal
