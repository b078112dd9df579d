// From the messages of a request to the tokens of a prompt. All APIs bring theirs into the form of OpenAI's
// chat completions, which templates expect.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/tool_calls.h"
#include "server/api/fields.h"
#include "server/model.h"

namespace gimbal::api {

struct ChatInput {
  Json messages =
      Json::array();  // {role, content (a text or null), tool_calls, tool_call_id, reasoning_content}
  Json tools = Json::array();  // {type: function, function: {name, description, parameters}}
  bool calls = true;           // it may call them
  bool thinks = true;          // where the model can
  std::string effort = {};     // of its thinking: "low", "medium", "high"; empty: its own
  std::string begun = {};      // of the answer: the model goes on from it
};

struct Prompt {
  std::vector<Token> tokens;
  bool opens_reasoning = false;
};

// "messages" as OpenAI has them, with parts joined to texts.
void read_messages(Fields&, Json& to);
// A list of parts {type: "text", text}, or a text. `where`: for errors.
Refused content_text(const Json& content, const std::string& where, std::string& to);
void read_tools(Fields&, Json& to);
// A tool with its schema under this name, as a function in OpenAI's form.
Json function_tool(Fields& tool, const char* schema);
// How much the model is to think: "none" up to "high".
void read_effort(Fields&, const char* name, ChatInput& to);
// "none" or "auto"; what forces a call is refused.
void read_tool_choice(Fields&, ChatInput& to);
// How the model writes calls; nothing where there are no tools to call.
std::optional<ToolCallFormat> call_format(const ServedModel&, const ChatInput&);

Refused chat_prompt(const ServedModel&, const ChatInput&, Prompt& to);

// "prompt" of the older APIs: a text, ids, or a list of either. As `gimbal run --raw` has it.
Refused raw_prompts(Fields&, const char* name, const ServedModel&, size_t most,
                    std::vector<std::vector<Token>>& to);

}  // namespace gimbal::api
