// Renders a conversation with the file's template and tokenizes the result.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "chat/chat_template.h"

namespace gimbal {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
  std::string reasoning = {};  // of an answer: the model's reasoning before it
};

// The variables that templates expect, with add_generation_prompt set. `thinks`: false requests an answer
// without reasoning from a model that can reason.
Json chat_variables(std::span<const ChatMessage> messages, bool thinks);

// Options with the local time, for templates that write a date.
RenderOptions local_time();

struct ChatPrompt {
  Rendered rendered;
  std::vector<Token> tokens;
  bool opens_reasoning = false;  // the answer begins inside <think>
};

// `variables`: from chat_variables(), or of a request. Their text is tokenized as plain text: control
// tokens written in a message are not recognized, unless `parse_special`. Adds BOS if the file requests it
// and the template did not write it. Errors: those of Template::render().
Result<ChatPrompt> chat_prompt(const ChatTemplate& chat, const Tokenizer& tokenizer, const Json& variables,
                               const RenderOptions& options, bool parse_special = false);

}  // namespace gimbal
