#include "server/api/prompt.h"

#include <algorithm>

#include "base/format.h"
#include "chat/chat_prompt.h"
#include "chat/forced_call.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

Refused read_tool_calls(const Json& calls, const std::string& where, Json& to) {
  if (!calls.is_array()) return wrong_field(where, format("'{}' must be a list", where));
  to = Json::array();
  for (size_t i = 0; i < calls.size(); i++) {
    Fields f(calls[i], format("{}[{}]", where, i));
    const auto id = f.text("id");
    f.word("type", {"function"});
    f.harmless({"index"});
    f.need("function");
    if (const Json* function = f.object("function")) {
      Fields g(*function, f.path("function"));
      g.need("name");
      const auto name = g.text("name");
      const Json* arguments = g.any("arguments");
      if (auto no = g.finish()) return no;
      // Templates expect an object; clients send its text.
      Json object = arguments ? *arguments : Json::object();
      if (object.is_string()) {
        Json parsed = parse_json(object.get_ref<const std::string&>());
        if (!parsed.is_discarded()) object = std::move(parsed);
      }
      to.push_back({{"id", id.value_or("")},
                    {"type", "function"},
                    {"function", {{"name", name.value_or("")}, {"arguments", std::move(object)}}}});
    }
    if (auto no = f.finish()) return no;
  }
  return {};
}

Refused read_message(const Json& j, const std::string& where, Json& to) {
  Fields f(j, where);
  f.need("role");
  const auto role = f.word("role", {"system", "developer", "user", "assistant", "tool", "function"});
  to = {{"role", role.value_or("")}};
  // Templates know one role for what the application says.
  if (role == "developer") to["role"] = "system";
  if (role == "function") to["role"] = "tool";
  if (const Json* content = f.any("content")) {
    std::string text;
    if (auto no = content_text(*content, f.path("content"), text)) return no;
    to["content"] = std::move(text);
  } else if (role != "assistant") {
    f.need("content");
  } else {
    to["content"] = "";
  }
  if (const auto name = f.text("name")) to["name"] = *name;
  if (const auto id = f.text("tool_call_id")) to["tool_call_id"] = *id;
  if (const auto reasoning = f.text("reasoning_content")) to["reasoning_content"] = *reasoning;
  f.refuse("audio", "gimbal reads texts only");
  f.refuse("function_call", "give 'tool_calls'");
  f.harmless({"refusal", "annotations"});
  if (const Json* calls = f.any("tool_calls"))
    if (auto no = read_tool_calls(*calls, f.path("tool_calls"), to["tool_calls"])) return no;
  return f.finish();
}

}  // namespace

void Prompt::fill(Plan& plan, const ChatInput& input) const {
  plan.splits_reasoning = true;
  plan.opens_reasoning = opens_reasoning;
  plan.calls = calls;
  plan.instead = instead;
  plan.begun = begun;
  plan.one_call = input.one_call;
}

Refused content_text(const Json& content, const std::string& where, std::string& to) {
  if (content.is_string()) {
    to = content.get<std::string>();
    return {};
  }
  if (!content.is_array()) return wrong_field(where, format("'{}' must be a text or a list of parts", where));
  for (size_t i = 0; i < content.size(); i++) {
    const Json& part = content[i];
    const std::string here = format("{}[{}]", where, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return wrong_field(here, format("'{}' must be an object with a 'type'", here));
    const std::string& type = part["type"].get_ref<const std::string&>();
    const char* field = type == "refusal" ? "refusal" : "text";
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal")
      return wrong_field(here + ".type",
                         format("'{}': parts of type {} are not supported: gimbal reads texts only",
                                here + ".type", quoted_briefly(type)));
    if (!part.contains(field) || !part[field].is_string())
      return wrong_field(format("{}.{}", here, field), format("'{}.{}' must be a text", here, field));
    to += part[field].get_ref<const std::string&>();
  }
  return {};
}

void read_messages(Fields& f, Json& to) {
  to = Json::array();
  if (!f.need("messages")) return;
  const Json* list = f.array("messages");
  if (!list) return;
  if (list->empty()) f.wrong("messages", "'messages' must have at least one message");
  for (size_t i = 0; i < list->size() && f.ok(); i++) {
    Json one;
    if (auto no = read_message((*list)[i], format("messages[{}]", i), one)) f.wrong_as(*no);
    to.push_back(std::move(one));
  }
}

Json function_tool(Fields& tool, const char* schema) {
  tool.need("name");
  const auto name = tool.text("name"), description = tool.text("description");
  const Json* parameters = tool.object(schema);
  tool.flag("strict");
  Json function = {{"name", name.value_or("")}};
  if (description) function["description"] = *description;
  function["parameters"] =
      parameters ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  return {{"type", "function"}, {"function", std::move(function)}};
}

void read_tools(Fields& f, Json& to) {
  const Json* list = f.array("tools");
  for (size_t i = 0; list && i < list->size() && f.ok(); i++) {
    Fields tool((*list)[i], format("tools[{}]", i));
    tool.need("type");
    tool.word("type", {"function"});
    tool.need("function");
    if (const Json* function = tool.object("function")) {
      Fields g(*function, tool.path("function"));
      to.push_back(function_tool(g, "parameters"));
      if (auto no = g.finish()) f.wrong_as(*no);
    }
    if (auto no = tool.finish()) f.wrong_as(*no);
  }
}

void read_effort(Fields& f, const char* name, ChatInput& to) {
  if (auto effort = f.word(name, {"none", "minimal", "low", "medium", "high"})) {
    to.thinks = to.asks_to_think = *effort != "none";
    if (to.thinks) to.effort = *effort == "minimal" ? "low" : *effort;
  }
}

void force_call(Fields& f, const char* name, const std::string& tool, ChatInput& to) {
  const auto is_it = [&](const Json& t) { return tool.empty() || t["function"]["name"] == tool; };
  if (to.tools.empty())
    return f.wrong(name, format("'{}' asks for a call, and there are no 'tools'", f.path(name)));
  if (std::none_of(to.tools.begin(), to.tools.end(), is_it))
    return f.wrong(name,
                   format("'{}' names {}, which is none of the 'tools'", f.path(name), quoted_briefly(tool)));
  to.must_call = true;
  to.only = tool;
}

void read_tool_choice(Fields& f, ChatInput& to) {
  if (f.flag("parallel_tool_calls") == false) to.one_call = true;
  const Json* choice = f.any("tool_choice");
  if (!choice) return;
  if (!choice->is_object()) {
    const std::string word = f.word("tool_choice", {"none", "auto", "required"}).value_or("");
    if (word == "none") to.calls = false;
    if (word == "required") force_call(f, "tool_choice", "", to);
    return;
  }
  // The name stands beside the type on /v1/responses, else in an object.
  Fields c(*choice, "tool_choice");
  c.need("type");
  c.word("type", {"function"});
  const Json* function = c.object("function");
  if (function) {
    Fields named(*function, "tool_choice.function");
    named.need("name");
    if (auto name = named.text("name")) force_call(named, "name", *name, to);
    if (auto no = named.finish()) c.wrong_as(*no);
  } else {
    c.need("name");
    if (auto name = c.text("name")) force_call(c, "name", *name, to);
  }
  if (auto no = c.finish()) f.wrong_as(*no);
}

namespace {

ToolCallFormat format_of(const ServedModel& model) {
  const auto source = model.file().string("tokenizer.chat_template");
  if (source && !source->empty()) return ToolCallFormat::of(*source);
  return {ToolCallFormat::Kind::Bare};
}

// What the answer must be: its beginning, which stands in the prompt, and how calls are read.
Refused constrain(const ServedModel& model, ChatInput& input, Settings& settings, std::string& begin,
                  Prompt& to) {
  const bool calls = !input.tools.empty() && input.calls;
  const ToolCallFormat format = format_of(model);
  if (calls) to.calls = format;
  const bool form = !settings.request.grammar.empty();
  if (!form && !input.must_call) return {};
  if (form && input.must_call)
    return wrong_field("tool_choice", "an answer that must be a call cannot match a form of its own, too");
  if (input.asks_to_think)
    return wrong_field("tool_choice",
                       "an answer whose form is given is written without thinking: do not ask for it");
  if (!input.begun.empty())
    return wrong_field("messages", "an answer that must be a call cannot go on from one that was begun");
  input.thinks = false;
  begin = begin_of_answer(format);
  if (!calls) return {};
  std::vector<CallableTool> tools;
  for (const Json& t : input.tools) {
    const Json& function = t["function"];
    const auto& name = function["name"].get_ref<const std::string&>();
    if (input.only.empty() || input.only == name) tools.push_back({name, &function["parameters"]});
  }
  auto answer = form
                    ? call_or_form(format, tools, settings.request.grammar, model.tokenizer(), input.one_call)
                    : forced_call(format, tools);
  if (!answer) {
    const Error& e = answer.error();
    return wrong_field(e.field, e.message + (e.remedy.empty() ? "" : "; ") + std::string(e.remedy));
  }
  settings.request.grammar = std::move(answer->grammar);
  settings.request.completes = !form;
  begin = std::move(answer->begin);
  to.calls = answer->format;
  for (const CallableTool& tool : tools)
    if (form) to.instead.emplace_back(tool.name);
  return {};
}

}  // namespace

Refused chat_prompt(const ServedModel& model, ChatInput input, Settings& settings, Prompt& to) {
  std::string begin;
  if (auto no = constrain(model, input, settings, begin, to)) return no;
  Json v = chat_variables({}, input.thinks);
  v["messages"] = std::move(input.messages);
  if (to.calls) v["tools"] = std::move(input.tools);
  if (!input.effort.empty()) v["reasoning_effort"] = input.effort;
  auto made = gimbal::chat_prompt(model.chat(), model.tokenizer(), v, local_time());
  if (!made) {
    if (made.error().reason == std::string_view(reason::kTemplateRaised))
      return wrong_field("messages",
                         format("the model's chat template refuses this: {}", made.error().message));
    return ApiError{500, "the model's chat template failed with these messages"};
  }
  to.tokens = std::move(made->tokens);
  to.opens_reasoning = made->opens_reasoning;
  const bool constrained = !settings.request.grammar.empty();
  if (constrained && to.opens_reasoning) begin = "</think>\n\n" + begin;
  if (!begin.empty()) to.begun = model.tokenizer().encode(begin, {.add_bos = false, .parse_special = true});
  if (!input.begun.empty())
    to.begun = model.tokenizer().encode(input.begun, {.add_bos = false, .parse_special = false});
  to.tokens.insert(to.tokens.end(), to.begun.begin(), to.begun.end());
  if (!to.begun.empty()) to.opens_reasoning = false;
  if (!input.begun.empty()) to.begun.clear();  // the client knows it
  if (to.tokens.empty()) return wrong_field("messages", "the messages make an empty prompt");
  if (int64_t(to.tokens.size()) > model.context()) return context_exceeded(to.tokens.size(), model.context());
  return {};
}

Refused raw_prompts(Fields& f, const char* name, const ServedModel& model, size_t most,
                    std::vector<std::vector<Token>>& to) {
  const Tokenizer& tokenizer = model.tokenizer();
  const Json* j = f.any(name);
  if (!j) {
    f.need(name);
    return f.error();
  }
  const auto ids = [&](const Json& list) -> Refused {
    to.emplace_back();
    for (const Json& id : list) {
      if (!id.is_number_integer() || id < 0 || id >= tokenizer.size())
        return wrong_field(
            name, format("'{}' has a token id that is not from 0 to {}", name, tokenizer.size() - 1));
      to.back().push_back(id.get<Token>());
    }
    return {};
  };
  if (j->is_string()) {
    to.push_back(tokenizer.encode(j->get_ref<const std::string&>()));
  } else if (j->is_array() && !j->empty() && (*j)[0].is_number()) {
    if (auto no = ids(*j)) return no;
  } else if (j->is_array() && !j->empty()) {
    if (j->size() > most) return wrong_field(name, format("'{}' has more than {} entries", name, most));
    for (const Json& one : *j) {
      if (one.is_string()) to.push_back(tokenizer.encode(one.get_ref<const std::string&>()));
      else if (!one.is_array())
        return wrong_field(name, format("'{}' must be texts or lists of token ids", name));
      else if (auto no = ids(one)) return no;
    }
  } else {
    return wrong_field(name,
                       format("'{}' must be a text, token ids, or a list of these, and not empty", name));
  }
  for (const auto& tokens : to)
    if (tokens.empty()) return wrong_field(name, format("'{}' has a prompt without tokens", name));
  return {};
}

}  // namespace gimbal::api
