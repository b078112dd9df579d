// Turns a chat request with tools and a required form of the answer into a prompt and a grammar. Used by
// the server's APIs and the public library.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_prompt.h"
#include "chat/tool_calls.h"

namespace gimbal {

struct ChatRequest : TemplateSettings {
  // {role, content (a text or null), tool_calls, tool_call_id, reasoning_content}
  Json messages = Json::array();
  Json tools = Json::array();  // {type: function, function: {name, description, parameters}}
  bool calls = true;           // the answer may call tools
  bool must_call = false;      // it must call one of them
  std::string only = {};       // if not empty: the only tool that it may call
  bool one_call = false;       // at most one call
  std::string effort = {};     // reasoning effort: "low", "medium", "high"; empty: the model's default
  std::string begun = {};      // the beginning of the answer, which the model continues
  bool opens_answer = true;    // false: the prompt ends behind the last message
  // Encoded files of pictures and sounds, and the beginning of their marks in the messages
  // (chat/picture_marks.h).
  std::vector<std::shared_ptr<const std::string>> pictures = {};
  int sounds = 0;  // of these
  std::string picture_mark = {};
};

// The required form of an answer, and how to parse it.
struct AnswerForm {
  std::optional<ToolCallFormat> calls = {};  // how the model writes calls; none: no calls are possible
  std::vector<std::string> instead = {};     // tools that may be called in place of an answer of that form
  std::string begin = {};                    // its beginning, at the end of the prompt
  std::string grammar = {};                  // GBNF of the remainder; empty: any text
  bool completes = false;                    // GenerationRequest::completes
};

// `grammar`: GBNF that the answer must match; empty: none. Sets request.thinks to false if the form allows
// no reasoning. Errors: Usage or Unsupported, naming the field.
Result<AnswerForm> answer_form(const ToolCallFormat&, const Tokenizer&, ChatRequest& request,
                               std::string grammar);

struct ChatTask {
  AnswerForm form;
  std::vector<Token> tokens;  // the prompt; kPictureToken: a picture
  std::string text = {};      // the same as text, including control tokens
  std::vector<Token> begun =
      {};  // its last tokens: they are part of the answer, but the caller does not know them
  bool opens_reasoning = false;  // the answer begins inside <think>
  bool one_call = false;
  bool continues = false;        // an answer that the caller has begun
  bool keeps_reasoning = false;  // the answer's text has the reasoning, between <think> and </think>
  std::vector<std::shared_ptr<const std::string>> pictures = {};  // in the order of their tokens
};

// Errors: those of Template::render().
Result<ChatTask> chat_task(const ChatTemplate&, const Tokenizer&, ChatRequest, AnswerForm,
                           const RenderLimits& limits = {});

}  // namespace gimbal
