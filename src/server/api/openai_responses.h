// The parts of POST /v1/responses: its input, its tools, and the form of its answer.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/fields.h"
#include "server/api/prompt.h"

namespace gimbal::api {

// A tool as the client declared it. The model gets each as a function.
struct ResponseTool {
  enum class Kind : uint8_t {
    Function,
    Custom,  // its argument is one text
    Shell,   // runs a command at the client
  } kind = Kind::Function;
  std::string space, name;  // `space`: its namespace, or empty
};

struct ResponseTools {
  std::map<std::string, ResponseTool> by_function;  // the function's name
  Json offered = Json::array();                     // as the answer repeats them
};

// Reads "instructions" and "input": items as messages of OpenAI's older form.
void read_response_input(Fields&, ChatInput& to);
// Reads "tools" and "tool_choice". Tools that nothing here can run are not offered to the
// model; a note says so.
ResponseTools read_response_tools(Call&, Fields&, ChatInput& to);

// The function's name of a tool in a namespace.
std::string function_name(const std::string& space, const std::string& name);
// The one argument of a custom tool, and the name of the function that stands for the shell.
inline constexpr const char* kCustomInput = "input";
inline constexpr const char* kShell = "local_shell";

// The response object, which the answer and most stream events contain.
struct ResponseFrame {
  std::string id, item_id, reasoning_id;
  Json fields;  // settings repeated from the request
  ResponseTools tools;
};
std::unique_ptr<Writer> response_writer(ResponseFrame);

}  // namespace gimbal::api
