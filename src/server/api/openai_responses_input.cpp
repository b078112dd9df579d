// The input and the tools of POST /v1/responses.
#include "base/format.h"
#include "server/api/call.h"
#include "server/api/openai_responses.h"

namespace gimbal::api {
namespace {

void add_call(Json& to, Fields& f, const std::string& function, Json arguments) {
  std::string id = f.text("call_id").value_or("");
  to.push_back({{"role", "assistant"},
                {"content", ""},
                {"tool_calls",
                 {{{"id", std::move(id)},
                   {"type", "function"},
                   {"function", {{"name", function}, {"arguments", std::move(arguments)}}}}}}});
}

// The command of a call of the shell.
Json read_action(Fields& f) {
  f.need("action");
  const Json* j = f.object("action");
  if (!j) return Json::object();
  Fields action(*j, f.path("action"));
  action.word("type", {"exec"});
  Json arguments = {{"command", action.texts("command", 1000)}};
  if (auto ms = action.whole("timeout_ms", 0, INT64_MAX)) arguments["timeout_ms"] = *ms;
  if (auto folder = action.text("working_directory")) arguments["working_directory"] = *folder;
  action.harmless({"env", "user"});  // the model chose neither
  if (auto no = action.finish()) f.wrong_as(*no);
  return arguments;
}

Refused read_item(const Json& j, const std::string& where, ChatInput& input) {
  Json& to = input.messages;
  Fields f(j, where);
  const std::string type =
      f.word("type", {"message", "function_call", "function_call_output", "reasoning", "custom_tool_call",
                      "custom_tool_call_output", "local_shell_call", "local_shell_call_output"})
          .value_or("message");
  f.harmless({"status"});
  if (type != "local_shell_call_output") f.harmless({"id"});
  if (!f.ok()) return f.error();
  if (type == "message") {
    f.need("role");
    f.need("content");
    auto role = f.word("role", {"user", "assistant", "system", "developer"});
    f.harmless({"phase"});
    if (!f.ok()) return f.error();
    std::string text;
    ChatInput* const pictures = role == "assistant" ? nullptr : &input;
    if (auto no = content_text(*f.any("content"), f.path("content"), text, pictures)) return no;
    to.push_back({{"role", role == "developer" ? "system" : *role}, {"content", std::move(text)}});
  } else if (type == "function_call" || type == "custom_tool_call") {
    const std::string name = function_name(f.text("namespace").value_or(""), f.text("name").value_or(""));
    f.harmless({"caller"});
    if (type == "custom_tool_call") {
      add_call(to, f, name, {{kCustomInput, f.text("input").value_or("")}});
    } else {
      const std::string arguments = f.text("arguments").value_or("{}");
      Json object = parse_json(arguments);
      if (object.is_discarded()) object = arguments;
      add_call(to, f, name, std::move(object));
    }
  } else if (type == "local_shell_call") {
    Json arguments = read_action(f);
    add_call(to, f, kShell, std::move(arguments));
  } else if (type == "reasoning") {
    f.harmless({"summary", "content", "encrypted_content"});  // the reasoning of an earlier answer
  } else {                                                    // the output of a call
    std::string text;
    f.need("output");
    if (const Json* output = f.any("output"))
      if (auto no = content_text(*output, f.path("output"), text, &input)) return no;
    std::string id = f.text("call_id").value_or("");
    if (type == "local_shell_call_output") id = f.text("id").value_or(id);
    f.harmless({"caller", "name"});
    to.push_back({{"role", "tool"}, {"tool_call_id", std::move(id)}, {"content", std::move(text)}});
  }
  return f.finish();
}

// A tool whose argument is one text. A grammar of the text is described to the model, and not enforced.
Json custom_tool(Call& call, Fields& tool) {
  tool.need("name");
  std::string about = tool.text("description").value_or("");
  if (const Json* j = tool.object("format")) {
    Fields form(*j, tool.path("format"));
    form.need("type");
    const std::string type = form.word("type", {"text", "grammar"}).value_or("");
    if (type == "grammar") {
      form.need("definition");
      const auto syntax = form.word("syntax", {"lark", "regex"});
      about += format("\nThe text matches this {}:\n{}", syntax == "regex" ? "regular expression" : "grammar",
                      form.text("definition").value_or(""));
      call.note("the grammar of a custom tool is described to the model, not enforced");
    }
    if (auto no = form.finish()) tool.wrong_as(*no);
  }
  const Json parameters = {{"type", "object"},
                           {"properties", {{kCustomInput, {{"type", "string"}}}}},
                           {"required", {kCustomInput}}};
  return {{"type", "function"},
          {"function",
           {{"name", tool.text("name").value_or("")}, {"description", about}, {"parameters", parameters}}}};
}

Json shell_tool() {
  const Json text = {{"type", "string"}};
  const Json properties = {{"command", {{"type", "array"}, {"items", text}}},
                           {"timeout_ms", {{"type", "integer"}}},
                           {"working_directory", text}};
  return {{"type", "function"},
          {"function",
           {{"name", kShell},
            {"description", "Runs a command with its arguments, without a shell, and returns its output"},
            {"parameters", {{"type", "object"}, {"properties", properties}, {"required", {"command"}}}}}}};
}

// Reads the tools of a request, and of its namespaces.
class ToolReader {
 public:
  ToolReader(Call& call, ChatInput& to, ResponseTools& tools) : call_(call), to_(to), tools_(tools) {}

  Refused read(const Json& j, const std::string& where) {
    Fields tool(j, where);
    tool.need("type");
    const std::string type = tool.word("type", {"function", "namespace", "custom", "local_shell",
                                                "web_search", "image_generation", "tool_search"})
                                 .value_or("");
    if (not_offered(tool, type)) {
      call_.note(format("the tool {} is not offered to the model: gimbal does not run it", type));
      return tool.finish();
    }
    if (type == "namespace") read_namespace(tool);
    else read_one(tool, type, "", "");
    if (tool.ok()) tools_.offered.push_back(repeated(j, type));
    return tool.finish();
  }

 private:
  using Kind = ResponseTool::Kind;

  // Tools that OpenAI runs, or that load others; agents offer them unasked.
  static bool not_offered(Fields& tool, const std::string& type) {
    if (type == "web_search")
      tool.harmless({"external_web_access", "index_gated_web_access", "filters", "user_location",
                     "search_context_size", "search_content_types"});
    else if (type == "image_generation")
      tool.harmless({"model", "quality", "size", "output_format", "output_compression", "moderation",
                     "background", "input_fidelity", "input_image_mask", "partial_images", "action"});
    else if (type == "tool_search") tool.harmless({"execution", "description", "parameters"});
    else return false;
    return true;
  }
  // OpenAI's answers have these two fields of each function.
  static Json repeated(const Json& tool, const std::string& type) {
    Json j = tool;
    if (type != "function") return j;
    for (const char* name : {"parameters", "strict"})
      if (!j.contains(name)) j[name] = nullptr;
    return j;
  }
  void read_namespace(Fields& space) {
    space.need("name");
    space.need("tools");
    const std::string name = space.text("name").value_or(""), about = space.text("description").value_or("");
    const Json* list = space.array("tools");
    for (size_t i = 0; list && i < list->size() && space.ok(); i++) {
      Fields tool((*list)[i], format("{}[{}]", space.path("tools"), i));
      tool.need("type");
      read_one(tool, tool.word("type", {"function", "custom"}).value_or(""), name, about);
      if (auto no = tool.finish()) space.wrong_as(*no);
    }
  }
  void read_one(Fields& tool, const std::string& type, const std::string& space, const std::string& about) {
    const Kind kind = type == "custom" ? Kind::Custom : type == "local_shell" ? Kind::Shell : Kind::Function;
    if (kind != Kind::Shell) tool.harmless({"defer_loading", "allowed_callers", "output_schema"});
    Json made = kind == Kind::Custom  ? custom_tool(call_, tool)
                : kind == Kind::Shell ? shell_tool()
                                      : function_tool(tool, "parameters");
    Json& function = made["function"];
    const std::string name = function["name"], full = function_name(space, name);
    if (!about.empty()) function["description"] = about + "\n" + function.value("description", "");
    function["name"] = full;
    if (!tools_.by_function.emplace(full, ResponseTool{kind, space, name}).second)
      tool.wrong("name", format("'{}': two tools are named {}", tool.path("name"), quoted_briefly(full)));
    to_.tools.push_back(std::move(made));
  }

  Call& call_;
  ChatInput& to_;
  ResponseTools& tools_;
};

}  // namespace

std::string function_name(const std::string& space, const std::string& name) {
  return space.empty() ? name : space + (space.ends_with("__") ? "" : "__") + name;
}

void read_response_input(Fields& f, ChatInput& to) {
  if (auto instructions = f.text("instructions"))
    to.messages.push_back({{"role", "system"}, {"content", *instructions}});
  if (!f.need("input")) return;
  const Json* input = f.any("input");
  if (input->is_string()) to.messages.push_back({{"role", "user"}, {"content", *input}});
  else if (!input->is_array() || input->empty())
    return f.wrong("input", "'input' must be a text or a list of items");
  else
    for (size_t i = 0; i < input->size() && f.ok(); i++)
      if (auto no = read_item((*input)[i], format("input[{}]", i), to)) f.wrong_as(*no);
}

ResponseTools read_response_tools(Call& call, Fields& f, ChatInput& to) {
  ResponseTools tools;
  ToolReader reader(call, to, tools);
  const Json* list = f.array("tools");
  for (size_t i = 0; list && i < list->size() && f.ok(); i++)
    if (auto no = reader.read((*list)[i], format("tools[{}]", i))) f.wrong_as(*no);
  read_tool_choice(f, to, true);
  return tools;
}

}  // namespace gimbal::api
