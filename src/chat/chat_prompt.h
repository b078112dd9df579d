// Renders a conversation with the file's template and tokenizes the result.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_template.h"

namespace gimbal {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
  std::string reasoning = {};  // of an answer: the model's reasoning before it
};

// Settings of a chat beside its messages.
struct TemplateSettings {
  std::optional<bool> thinks = {};  // reason before the answer; none: the template decides
  Json variables = Json::object();  // more variables of the template
};

// Sets `thinks` from the booleans "enable_thinking" and "thinking" of the object, and adds its other members
// to `variables`. Errors: Usage, naming the variable: no object; one that each request sets ("messages"), or
// the model's file ("bos_token"); one of the two that is no boolean.
Status set_variables(const Json& object, TemplateSettings& to);

// The variables that templates expect, with add_generation_prompt set.
Json chat_variables(std::span<const ChatMessage> messages, const TemplateSettings& = {});

// Options with the local time, for templates that write a date.
RenderOptions local_time();

inline constexpr Token kPictureToken = -1;  // the place of a picture

struct ChatPrompt {
  Rendered rendered;
  std::vector<Token> tokens;
  std::vector<int> pictures = {};  // indices, in the order of their tokens
  bool opens_reasoning = false;    // the answer begins inside <think>
};

// `variables`: from chat_variables(), or of a request. Their text is tokenized as plain text: control
// tokens written in a message are not recognized, unless `parse_special`. Adds BOS if the file requests it
// and the template did not write it. `pictures`: marks in the messages. The text between two of them is
// tokenized alone. Errors: those of Template::render() and find_picture_marks().
struct PictureMarks {
  std::string_view begin = {};  // chat/picture_marks.h
  size_t count = 0;
};
Result<ChatPrompt> chat_prompt(const ChatTemplate& chat, const Tokenizer& tokenizer, const Json& variables,
                               const RenderOptions& options, bool parse_special = false,
                               PictureMarks pictures = {});

// The tokens that follow an answer in a conversation: its end, the next question, and the beginning of the
// answer to it. Errors: those of Template::render(); Usage if the template leaves answers out, or the file
// has none.
Result<std::vector<Token>> next_turn(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                     const std::string& question, const RenderOptions& options);

}  // namespace gimbal
