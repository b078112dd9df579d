// A chat request with tools and a form of the answer, as a prompt and the grammar of its answer. Both the
// server's APIs and the public library make their prompts here.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_prompt.h"
#include "chat/tool_calls.h"

namespace gimbal {

struct ChatRequest {
  // {role, content (a text or null), tool_calls, tool_call_id, reasoning_content}
  Json messages = Json::array();
  Json tools = Json::array();  // {type: function, function: {name, description, parameters}}
  bool calls = true;           // the answer may call them
  bool must_call = false;      // it must call one of them, or
  std::string only = {};       // the one of this name
  bool one_call = false;       // at most one
  bool thinks = true;          // where the model can
  bool asks_to_think = false;  // explicitly
  std::string effort = {};     // of its thinking: "low", "medium", "high"; empty: its own
  std::string begun = {};      // the beginning of the answer, which the model continues
};

// What an answer must be, and how it is read.
struct AnswerForm {
  std::optional<ToolCallFormat> calls = {};  // how the model writes calls; none: there is nothing to call
  std::vector<std::string> instead = {};     // tools that an answer of a given form may call instead
  std::string begin = {};                    // its beginning, which the prompt ends with
  std::string grammar = {};                  // GBNF of the rest; empty: any text
  bool completes = false;                    // GenerationRequest::completes
};

// `grammar`: GBNF that the caller wants the answer to match; empty: none. Sets request.thinks to false where
// the form leaves no place for thinking. Errors: Usage or Unsupported, with the field at fault.
Result<AnswerForm> answer_form(const ToolCallFormat&, const Tokenizer&, ChatRequest& request,
                               std::string grammar);

struct ChatTask {
  AnswerForm form;
  std::vector<Token> tokens;  // the prompt
  std::string text = {};      // the same, with control tokens written out
  std::vector<Token> begun =
      {};  // its last tokens, which belong to the answer and are not known to the caller
  bool opens_reasoning = false;  // the answer begins inside of <think>
  bool one_call = false;
};

// Errors: those of Template::render().
Result<ChatTask> chat_task(const ChatTemplate&, const Tokenizer&, ChatRequest, AnswerForm,
                           const RenderLimits& limits = {});

}  // namespace gimbal
