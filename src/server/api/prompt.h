// From the messages of a request to prompt tokens. All APIs convert their messages to OpenAI's chat format,
// which templates expect.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_request.h"
#include "chat/task_prompts.h"
#include "server/api/answer.h"
#include "server/api/fields.h"
#include "server/api/pictures.h"
#include "server/api/settings.h"
#include "server/model.h"

namespace gimbal::api {

struct Call;

struct Prompt : ChatTask {
  // Sets how to parse the answer.
  void fill(Plan&, const ChatInput&) const;
};

// Reads "messages" in OpenAI's format; joins text parts, with marks of pictures.
void read_messages(Fields&, ChatInput& to);
// A list of parts {type: "text", text}, or a text. `where`: for errors. `pictures`: takes those of the parts;
// nullptr: there can be none.
Refused content_text(const Json& content, const std::string& where, std::string& to,
                     ChatInput* pictures = nullptr);
void read_tools(Fields&, Json& to);
// A tool as a function in OpenAI's form; `schema`: the field with its JSON schema.
Json function_tool(Fields& tool, const char* schema);
// Reads the most tokens of the reasoning, -1 for no limit: its end is then put in place of more.
void read_reasoning_budget(Fields&, const char* name, int64_t least, Settings& to);
// Reads the reasoning effort: "none" to "high".
void read_effort(Fields&, const char* name, ChatInput& to);
// Reads OpenAI's "tool_choice" and "parallel_tool_calls". Call it after read_tools(). `custom`: it may name a
// tool of this type.
void read_tool_choice(Fields&, ChatInput& to, bool custom = false);
// Requires a call of this tool, or of any (""). Records an error in the field if the tool does not exist.
void force_call(Fields&, const char* name, const std::string& tool, ChatInput& to);

// An answer that must be a call, or match a grammar, is written without thinking; a call becomes the grammar
// of `settings`, and calls that may be part of it. The model's template runs within services.renderings.
Refused chat_prompt(Call&, const ServedModel&, ChatInput, Settings& settings, Prompt& to);

// The model's tokens for prompts with a gap to fill. Refused, in this field: it has none.
Refused tokens_for_infill(const ServedModel&, const char* field, InfillTokens& to);

// Refused: it has pictures or sounds that the model cannot take.
Refused check_senses(const ChatInput&, const ServedModel&);
// Refused: the prompt has pictures, so its tokens are unknown before they are encoded. `field`: of the
// prompt.
Refused countable(const ChatInput&, const ServedModel&, const char* field);

inline constexpr size_t kMostPrompts = 64;  // in one request

// Reads "prompt", one text or at most `most`, and puts the gap between each and the suffix. Refused: a prompt
// of token ids; as above.
Refused prompts_with_suffix(Fields&, const ServedModel&, const std::string& suffix, size_t most,
                            std::vector<std::vector<Token>>& to);

// Reads "prompt" of the older APIs: a text; token ids, with texts between them or not; or a list of these. A
// list is one prompt if it has a number (`one`). No template, like `gimbal run --raw`.
Refused raw_prompts(Fields&, const char* name, const ServedModel&, size_t most,
                    std::vector<std::vector<Token>>& to, bool* one = nullptr);

}  // namespace gimbal::api
