// A conversation as a prompt: the messages, the file's template over them, and the token ids of the result.
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
  std::string reasoning = {};  // of an answer: what the model thought before it
};

// The variables that templates expect, with the prompt for an answer at the end. `thinks`: false asks a model
// that can think before it answers not to.
Json chat_variables(std::span<const ChatMessage> messages, bool thinks);

// With the time of this computer for templates that write a date.
RenderOptions local_time();

struct ChatPrompt {
  Rendered rendered;
  std::vector<Token> tokens;
  bool opens_reasoning = false;  // the answer begins inside of <think>
};

// `variables` as of chat_variables(), or of a request. What came in with them is text: a control token that
// is written out in a message gives the tokens of its letters, unless `parse_special`. BOS comes first where
// the file asks for it and the template did not write it. Errors: those of Template::render().
Result<ChatPrompt> chat_prompt(const ChatTemplate& chat, const Tokenizer& tokenizer, const Json& variables,
                               const RenderOptions& options, bool parse_special = false);

}  // namespace gimbal
