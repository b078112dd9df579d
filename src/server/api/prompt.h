// From the messages of a request to the tokens of a prompt. All APIs bring theirs into the form of OpenAI's
// chat completions, which templates expect.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_request.h"
#include "server/api/answer.h"
#include "server/api/fields.h"
#include "server/api/settings.h"
#include "server/model.h"

namespace gimbal::api {

struct Call;

using ChatInput = ChatRequest;

struct Prompt : ChatTask {
  // How the answer to it is read.
  void fill(Plan&, const ChatInput&) const;
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
// "tool_choice" as OpenAI has it, and "parallel_tool_calls". Behind read_tools().
void read_tool_choice(Fields&, ChatInput& to);
// That a tool of this name, or any (""), must be called. A mistake in the field where there is none.
void force_call(Fields&, const char* name, const std::string& tool, ChatInput& to);

// An answer that must be a call, or match a grammar, is written without thinking; a call becomes the grammar
// of `settings`, and calls that may be part of it. The model's template runs within services.renderings.
Refused chat_prompt(const Call&, const ServedModel&, ChatInput, Settings& settings, Prompt& to);

// "prompt" of the older APIs: a text, ids, or a list of either. As `gimbal run --raw` has it.
Refused raw_prompts(Fields&, const char* name, const ServedModel&, size_t most,
                    std::vector<std::vector<Token>>& to);

}  // namespace gimbal::api
