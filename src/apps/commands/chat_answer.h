// One answer of a chat: the prompt, shortened to fit the context if necessary, and the streamed text.
#pragma once
#include <string>

#include "apps/commands/chat.h"
#include "apps/commands/chat_loop.h"
#include "chat/conversation.h"

namespace gimbal {

struct ChatAnswer {
  Generated generated;  // of all parts, if the context became full in between
  std::string text, reasoning;
  int dropped = 0;       // number of questions dropped
  bool repeats = false;  // it repeated itself, and was ended (ChatSettings::guard)
};

// Answers the last question of the conversation; drops the oldest questions if the context is too small.
// Reuses the state that the session holds. Errors: those of the template and of generate(); Failed
// (context-full) if the last question alone does not fit, or if dropping is disabled.
Result<ChatAnswer> answer_chat(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat,
                               Conversation& conversation, const ChatSettings& settings,
                               const ChatSink& sink);

}  // namespace gimbal
