#include "chat/forced_call.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/json_schema.h"

namespace gimbal {
namespace {

// A call between its marks: `before` NAME as JSON, `between` arguments `after`.
struct Form {
  std::string_view mark;  // of ToolCallFormat; empty: of any other
  std::string_view before, between, after;
};
constexpr Form kForms[] = {
    {"[TOOL_CALLS]", R"([{"name": )", R"(, "arguments": )", "}]"},
    {"<|tool_call|>", R"([{"name": )", R"(, "arguments": )", "}]"},
    {"<|START_ACTION|>", R"([{"tool_call_id": "0", "tool_name": )", R"(, "parameters": )", "}]"},
    {"", R"({"name": )", R"(, "arguments": )", "}"},
};
constexpr Form kBare = {"", R"({"name": )", R"(, "parameters": )", "}"};

Error of_tool(std::string_view name, std::string_view what, std::string_view remedy) {
  return {Code::Usage, format("the tool {}: {}", gimbal::quoted(name), what), remedy, "", "tools"};
}

// A tool without parameters is called without any, and one whose schema leaves it open takes an object.
Result<Grammar> arguments_of(const CallableTool& tool) {
  Json schema = *tool.parameters;
  if (!schema.is_object()) return of_tool(tool.name, "its parameters must be a JSON schema", "");
  if (!schema.contains("type")) schema["type"] = "object";
  if (schema["type"] != "object")
    return of_tool(tool.name, "its parameters must be of type object", "put them into an object");
  const auto names = schema.find("properties");
  bool open = names != schema.end() && !names->empty();
  for (const char* speaks :
       {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "required", "additionalProperties"})
    open |= schema.contains(speaks);
  if (!open) schema["additionalProperties"] = false;
  auto grammar = json_schema_grammar(schema.dump());
  if (!grammar) return of_tool(tool.name, grammar.error().message, grammar.error().remedy);
  return grammar;
}

}  // namespace

Result<ForcedCall> forced_call(const ToolCallFormat& format, std::span<const CallableTool> tools) {
  using Kind = ToolCallFormat::Kind;
  ForcedCall out{format, "", ""};
  Grammar g;
  const uint32_t root = g.add_rule("call");
  std::vector<Grammar::Id> calls;
  // gpt-oss names the tool in a message's header, among control tokens: only one tool can be named
  // beforehand.
  const bool addressed = format.kind == Kind::Harmony && tools.size() == 1;
  if (addressed) {
    out.begin =
        gimbal::format("<|channel|>commentary to=functions.{} <|constrain|>json<|message|>", tools[0].name);
  } else if (format.kind == Kind::Marked) {
    out.begin = format.begin;
    if (format.begin == "<tool_call>") out.begin += '\n';  // as these models write it
  } else {
    if (format.kind == Kind::Harmony) out.begin = begin_of_answer(format);
    out.format = {Kind::Bare};
  }
  const Form* form = &kBare;
  if (format.kind == Kind::Marked)
    form = std::find_if(std::begin(kForms), std::end(kForms) - 1,
                        [&](const Form& f) { return f.mark == format.begin; });
  for (const CallableTool& tool : tools) {
    if (!is_tool_name(tool.name))
      return of_tool(tool.name, "no call can have this name", "use letters, digits, _ and -");
    auto arguments = arguments_of(tool);
    if (!arguments) return arguments.error();
    const Grammar::Id object = g.include(*arguments);
    if (g.too_large()) return of_tool(tool.name, "the schemas of the tools are too large together", "");
    calls.push_back(
        addressed ? object
                  : g.sequence({g.text(gimbal::format("{}\"{}\"{}", form->before, tool.name, form->between)),
                                object, g.text(form->after)}));
  }
  g.define(root, g.choice(calls));
  out.grammar = g.to_gbnf();
  return out;
}

std::string_view begin_of_answer(const ToolCallFormat& format) {
  return format.kind == ToolCallFormat::Kind::Harmony ? "<|channel|>final<|message|>" : "";
}

}  // namespace gimbal
