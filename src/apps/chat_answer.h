// One answer of a chat: the prompt, cut to the context where it must be, and the text as it streams.
#pragma once
#include <functional>
#include <string>

#include "apps/chat.h"
#include "chat/conversation.h"

namespace gimbal {

struct ChatAnswer {
  Generated generated;  // of the last part, when the context was full in between
  std::string text, reasoning;
  int dropped = 0;  // questions that had to be forgotten
};

// Writes `reasoning` and then `answer`; false ends the answer.
using ChatSink = std::function<bool(std::string_view reasoning, std::string_view answer)>;

// Answers the last question of the conversation, from which it drops the oldest questions where the context
// demands it. What the session holds already is not computed again. Errors: those of the template and of
// generate(); Failed (context-full) when the last question alone does not fit, or nothing may be dropped.
Result<ChatAnswer> answer_chat(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat,
                               Conversation& conversation, const ChatSettings& settings,
                               const ChatSink& sink);

}  // namespace gimbal
