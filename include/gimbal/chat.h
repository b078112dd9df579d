// Conversations: messages become a prompt by the chat template of the model's file, and the answer is split
// into text, reasoning and calls of tools.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "gimbal/text.h"

namespace gimbal::v1 {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object
  std::string id = {};    // set in messages to the model; the model writes none
};

struct Message {
  std::string role = "user";  // "system", "user", "assistant", "tool"
  std::string content = {};
  std::string reasoning = {};             // of the assistant: its thoughts before the content
  std::vector<ToolCall> tool_calls = {};  // of the assistant
  std::string tool_call_id = {};          // of a tool: the call that it answers
  // Of the user or a tool: bytes of picture files (or sounds), which precede the content. Needs
  // ModelOptions::mmproj. Recent ones are not computed again when the next turn has them.
  std::vector<std::string> images = {};
};

struct Tool {
  std::string name, description;
  std::string parameters = R"({"type": "object", "properties": {}})";  // JSON schema of an object
};

enum class ToolChoice {
  Auto,      // the model decides
  None,      // no calls
  Required,  // the answer is a call
};

struct ChatOptions : TextOptions {
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::Auto;
  std::string tool;                // with Required: the name of the tool to call; empty: any
  bool parallel_calls = true;      // several calls in one answer
  bool think = true;               // if the model can; false requests none
  std::string template_variables;  // more variables of the chat template: a JSON object; empty: none
  std::string effort;              // of thinking, if the template supports it: "low", "medium", "high"
  int reasoning_budget = -1;       // the most tokens of thinking; then the answer must begin; -1: no limit
};

struct ChatPrompt {
  std::string text;           // with control tokens written out
  std::vector<Token> tokens;  // -1: a picture
};

// A piece of an answer: the text finalized by a token.
struct ReplyPiece {
  std::string text, reasoning;
  std::vector<ToolCall> tool_calls;
};
// Return false to cancel.
using ChatSink = std::function<bool(const ReplyPiece&)>;

struct Reply {
  Message message;      // of the assistant: append it to the messages of the next turn
  Generated generated;  // its `text` is the answer before it was split
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
