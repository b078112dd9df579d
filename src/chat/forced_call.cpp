#include "chat/forced_call.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/grammar.h"

namespace gimbal {
namespace {

using Kind = ToolCallFormat::Kind;
using Id = Grammar::Id;

// A call between its marks: `before` NAME as JSON, `between` arguments `after`; a list of calls in brackets.
struct Form {
  std::string_view mark;  // of ToolCallFormat; empty: of any other
  std::string_view before, between, after;
  bool list = false;
};
constexpr Form kForms[] = {
    {"[TOOL_CALLS]", R"({"name": )", R"(, "arguments": )", "}", true},
    {"<|tool_call|>", R"({"name": )", R"(, "arguments": )", "}", true},
    {"<|START_ACTION|>", R"({"tool_call_id": "0", "tool_name": )", R"(, "parameters": )", "}", true},
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
  if (!grammar->has_text()) return of_tool(tool.name, "no value satisfies the schema of its parameters", "");
  return grammar;
}

// One call of any of the tools. `written`: from the tool's name and its arguments to the call.
template <class Written>
Result<Id> any_call(Grammar& g, std::span<const CallableTool> tools, const Written& written) {
  std::vector<Id> calls;
  for (const CallableTool& tool : tools) {
    if (!is_tool_name(tool.name))
      return of_tool(tool.name, "no call can have this name", "use letters, digits, _ and -");
    auto arguments = arguments_of(tool);
    if (!arguments) return arguments.error();
    calls.push_back(written(tool.name, g.include(*arguments)));
    if (g.too_large()) return of_tool(tool.name, "the schemas of the tools are too large together", "");
  }
  const uint32_t call = g.add_rule("call");
  g.define(call, g.choice(calls));
  return g.rule(call);
}

// The text between the family's marks. `most`: maximum of calls in a list.
Result<Id> body_of(Grammar& g, const ToolCallFormat& format, std::span<const CallableTool> tools,
                   uint32_t most) {
  const Form* form = &kBare;
  if (format.kind == Kind::Marked)
    form = std::find_if(std::begin(kForms), std::end(kForms) - 1,
                        [&](const Form& f) { return f.mark == format.begin; });
  auto call = any_call(g, tools, [&](std::string_view name, Id arguments) {
    return g.sequence({g.text(gimbal::format("{}\"{}\"{}", form->before, name, form->between)), arguments,
                       g.text(form->after)});
  });
  if (!call || !form->list) return call;
  const Id more = g.repeat(g.sequence({g.text(", "), *call}), 0, most == kUnbounded ? most : most - 1);
  return g.sequence({g.text("["), *call, more, g.text("]")});
}

// The control token of this name; -1: it is written as text.
Token control_token(const Tokenizer& tokenizer, std::string_view name) {
  for (Token t : tokenizer.encode(name, {.add_bos = false, .parse_special = true}))
    if (tokenizer.is_control(t) && tokenizer.piece(t, true) == name) return t;
  return -1;
}

// A mark as the vocabulary has it. What ends an answer needs no mention.
Id mark_of(Grammar& g, const Tokenizer& tokenizer, std::string_view mark) {
  const Token t = mark.empty() ? -1 : control_token(tokenizer, mark);
  if (t < 0) return g.text(mark);
  return tokenizer.is_stop(t) ? g.nothing() : g.token(uint32_t(t));
}

Result<Id> marked_calls(Grammar& g, const ToolCallFormat& format, std::span<const CallableTool> tools,
                        const Tokenizer& tokenizer, bool one_call) {
  const auto mark = [&](std::string_view name) { return mark_of(g, tokenizer, name); };
  const bool apart = !format.end.empty();  // each call has its marks
  auto body = body_of(g, format, tools, one_call ? 1 : kUnbounded);
  if (!body) return body;
  // SentencePiece has a space behind a control token, and Qwen's calls have lines of their own.
  const Id line = g.optional(g.text("\n")), gap = g.optional(g.choice({g.text(" "), g.text("\n")}));
  if (!apart) return g.sequence({mark(format.begin), gap, *body});
  const Id one = g.sequence({mark(format.begin), gap, *body, line, mark(format.end)});
  const Id calls = one_call ? one : g.sequence({one, g.repeat(g.sequence({line, one}), 0, kUnbounded)});
  if (format.all_begin.empty()) return calls;
  return g.sequence({g.optional(mark(format.all_begin)), calls, g.optional(mark(format.all_end))});
}

}  // namespace

Result<ForcedCall> forced_call(const ToolCallFormat& format, std::span<const CallableTool> tools) {
  ForcedCall out{format, "", ""};
  Grammar g;
  const uint32_t root = g.add_rule("root");
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
  auto call = addressed ? any_call(g, tools, [](std::string_view, Id arguments) { return arguments; })
                        : body_of(g, format, tools, 1);
  if (!call) return call.error();
  g.define(root, *call);
  out.grammar = g.to_gbnf();
  return out;
}

Result<ForcedCall> call_or_form(const ToolCallFormat& format, std::span<const CallableTool> tools,
                                std::string_view form, const Tokenizer& tokenizer, bool one_call) {
  auto asked = Grammar::gbnf(form);
  if (!asked) return asked.error();
  ForcedCall out{format, "", ""};
  Grammar g;
  const uint32_t root = g.add_rule("root");
  Id text = g.include(*asked);
  Result<Id> calls = text;
  if (format.kind == Kind::Marked) {
    calls = marked_calls(g, format, tools, tokenizer, one_call);
  } else if (format.kind == Kind::Harmony) {
    for (const char* name : {"<|channel|>", "<|message|>", "<|constrain|>"})
      if (control_token(tokenizer, name) < 0)
        return Error{Code::Unsupported,
                     gimbal::format("calls or an answer of a given form: the chat template writes calls with "
                                    "the control token {}, which the vocabulary has not",
                                    name),
                     "ask for one of them", "", "tools"};
    const auto message = [&] { return mark_of(g, tokenizer, "<|message|>"); };
    out.begin = "<|channel|>";
    text = g.sequence({g.text("final"), message(), text});
    calls = any_call(g, tools, [&](std::string_view name, Id arguments) {
      return g.sequence({g.text(gimbal::format("commentary to=functions.{} ", name)),
                         mark_of(g, tokenizer, "<|constrain|>"), g.text("json"), message(), arguments});
    });
  } else {
    out.format = {Kind::Bare};
    calls = body_of(g, out.format, tools, 1);
  }
  if (!calls) return calls.error();
  g.define(root, g.choice({text, *calls}));
  if (g.too_large())
    return Error{Code::Usage, "the form of the answer and the schemas of the tools are too large together",
                 "ask for less", "", "tools"};
  out.grammar = g.to_gbnf();
  return out;
}

std::string_view begin_of_answer(const ToolCallFormat& format) {
  return format.kind == Kind::Harmony ? "<|channel|>final<|message|>" : "";
}

}  // namespace gimbal
