#include "server/api/prompt.h"

#include <algorithm>

#include "base/format.h"
#include "chat/chat_prompt.h"
#include "chat/forced_call.h"
#include "server/api/call.h"
#include "server/api/text.h"
#include "server/named_model.h"

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

Refused read_message(const Json& j, const std::string& where, ChatInput& input, Json& to) {
  Fields f(j, where);
  f.need("role");
  const auto role = f.word("role", {"system", "developer", "user", "assistant", "tool", "function"});
  to = {{"role", role.value_or("")}};
  // Templates have a single role for the application's instructions.
  if (role == "developer") to["role"] = "system";
  if (role == "function") to["role"] = "tool";
  if (const Json* content = f.any("content")) {
    std::string text;
    ChatInput* const pictures = role == "assistant" ? nullptr : &input;
    if (auto no = content_text(*content, f.path("content"), text, pictures)) return no;
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
  plan.task = {form, {}, {}, begun, opens_reasoning, input.one_call, continues, keeps_reasoning};
}

Refused content_text(const Json& content, const std::string& where, std::string& to, ChatInput* pictures) {
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
    if (pictures && (is_picture_part(type) || type == "input_audio")) {
      if (auto no = read_picture_part(part, here, *pictures, to)) return no;
      continue;
    }
    const char* field = type == "refusal" ? "refusal" : "text";
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal")
      return wrong_field(
          here + ".type",
          format("'{}': parts of type {} are not supported {}", here + ".type", quoted_briefly(type),
                 pictures ? "here: send texts, pictures and sounds" : "in this message: send texts"));
    if (!part.contains(field) || !part[field].is_string())
      return wrong_field(format("{}.{}", here, field), format("'{}.{}' must be a text", here, field));
    to += part[field].get_ref<const std::string&>();
  }
  return {};
}

void read_messages(Fields& f, ChatInput& to) {
  to.messages = Json::array();
  if (!f.need("messages")) return;
  const Json* list = f.array("messages");
  if (!list) return;
  if (list->empty()) f.wrong("messages", "'messages' must have at least one message");
  for (size_t i = 0; i < list->size() && f.ok(); i++) {
    Json one;
    if (auto no = read_message((*list)[i], format("messages[{}]", i), to, one)) f.wrong_as(*no);
    to.messages.push_back(std::move(one));
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

void read_reasoning_budget(Fields& f, const char* name, int64_t least, Settings& to) {
  if (const auto v = f.whole(name, least, INT64_MAX))
    to.request.reasoning.tokens = int(std::min<int64_t>(*v, INT32_MAX));
}

void read_effort(Fields& f, const char* name, ChatInput& to) {
  if (auto effort = f.word(name, {"none", "minimal", "low", "medium", "high", "xhigh"})) {
    to.thinks = *effort != "none";
    if (*to.thinks) to.effort = *effort == "minimal" ? "low" : *effort == "xhigh" ? "high" : *effort;
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

void read_tool_choice(Fields& f, ChatInput& to, bool custom) {
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
  if (custom) c.word("type", {"function", "custom"});
  else c.word("type", {"function"});
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

// Why there is no prompt. A template's own words name its line and construct, and nothing of this machine.
ApiError of_template(const Error& e) {
  const std::string_view why = e.reason;
  if (why == reason::kTemplatesBusy) return {503, e.message + "; try again later", "", "templates_busy", 2};
  if (e.code == Code::Usage) return wrong_field("messages", e.message);
  if (why == reason::kTemplateRaised)
    return wrong_field("messages", format("the model's chat template refuses this: {}", e.message));
  return {500, format("the model's chat template failed with these messages: {}", e.message), "",
          why == reason::kTemplateLimit ? "template_limit" : "template_failed"};
}

// For a conversation without words of the system.
void put_first(const std::string& system, Json& messages) {
  if (!messages.empty() && messages[0].is_object()) {
    const Json role = messages[0].value("role", Json());
    if (role == "system" || role == "developer") return;
  }
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", system}});
}

}  // namespace

Refused check_senses(const ChatInput& input, const ServedModel& model) {
  const auto cannot = [&](const char* verb, const char* things) {
    return wrong_field(
        "messages", format("the model '{}' cannot {}: it has no projector file (mmproj) for {}; send none, "
                           "or ask another model",
                           model.id(), verb, things));
  };
  if (input.pictures.size() > size_t(input.sounds) && !model.sees()) return cannot("see", "pictures");
  if (input.sounds > 0 && !model.hears()) return cannot("hear", "sounds");
  return {};
}

Refused countable(const ChatInput& input, const ServedModel& model, const char* field) {
  if (input.pictures.empty()) return {};
  if (auto no = check_senses(input, model)) return no;
  return wrong_field(field,
                     "pictures and sounds are counted only when an answer is made: their tokens depend on "
                     "their sizes; "
                     "count the messages without them");
}

Refused chat_prompt(Call& call, const ServedModel& model, ChatInput input, Settings& settings, Prompt& to) {
  if (auto no = check_senses(input, model)) return no;
  if (auto no = call.services.picture_fetches.fetch(call.client, input)) return no;
  if (const ModelPreset* preset = model.preset(); preset && !preset->system.empty())
    put_first(preset->system, input.messages);
  const TemplateSettings& usual = call.services.template_settings;
  input.variables.insert(usual.variables.begin(), usual.variables.end());  // those of the request stay
  auto form = answer_form(model.chat().calls, model.tokenizer(), input, settings.request.grammar);
  if (!form) {
    const Error& e = form.error();
    return wrong_field(e.field, e.message + (e.remedy.empty() ? "" : "; ") + std::string(e.remedy));
  }
  if (!input.thinks) input.thinks = usual.thinks;
  if (form->calls && !model.chat().knows_tools)
    call.note("the chat template knows no tools; they were given as text");
  settings.request.grammar = form->grammar;
  settings.request.completes = form->completes;
  const auto render = [&](const RenderLimits& limits) -> Status {
    auto made = chat_task(model.chat(), model.tokenizer(), input, *form, limits);
    if (!made) return made.error();
    static_cast<ChatTask&>(to) = std::move(*made);
    return Done{};
  };
  if (auto ok = call.services.renderings.run(call.client, model.id(), call.body_bytes, render); !ok)
    return of_template(ok.error());
  if (to.tokens.empty()) return wrong_field("messages", "the messages make an empty prompt");
  settings.request.pictures = std::move(to.pictures);
  if (settings.request.reasoning.tokens < 0)
    settings.request.reasoning.tokens = call.services.reasoning_budget;
  if (settings.request.reasoning.tokens >= 0)
    set_reasoning_marks(settings.request.reasoning, model.chat().calls.kind == ToolCallFormat::Kind::Harmony,
                        to.opens_reasoning);
  return {};
}

namespace {

// A text, or token ids and texts in turn, or {prompt_string}, or the content of a message: {content}. Only a
// text at the beginning gets BOS.
Refused raw_prompt(const Json& j, const char* name, const Tokenizer& tokenizer, std::vector<Token>& to) {
  const auto add_text = [&](const std::string& text) {
    const auto tokens = tokenizer.encode(text, {.add_bos = to.empty()});
    to.insert(to.end(), tokens.begin(), tokens.end());
  };
  if (j.is_string()) {
    add_text(j.get_ref<const std::string&>());
  } else if (j.is_object()) {
    Fields f(j, name);
    const Json* parts = f.array("content");
    const auto given = f.text("prompt_string");
    std::string text = given.value_or("");
    if (!parts) f.need("prompt_string");
    else if (given) f.wrong("prompt_string", format("'{}' has 'content', too: give one of them", name));
    else if (auto no = content_text(*parts, f.path("content"), text)) f.wrong_as(*no);
    add_text(text);
    f.refuse("multimodal_data", "the model reads texts only", Json::array());
    if (auto no = f.finish()) return wrong_field(name, no->message);
  } else if (j.is_array()) {
    for (const Json& one : j) {
      if (one.is_string()) add_text(one.get_ref<const std::string&>());
      else if (one.is_number_integer() && one >= 0 && one < tokenizer.size()) to.push_back(one.get<Token>());
      else
        return wrong_field(
            name, format("'{}' has an entry that is neither a text nor a token id from 0 to {}", name,
                         tokenizer.size() - 1));
    }
  } else {
    return wrong_field(name, format("'{}' must be a text, token ids and texts, or a list of these", name));
  }
  if (to.empty()) return wrong_field(name, format("'{}' has a prompt without tokens", name));
  return {};
}

}  // namespace

Refused raw_prompts(Fields& f, const char* name, const ServedModel& model, size_t most,
                    std::vector<std::vector<Token>>& to, bool* one) {
  f.need(name);
  const Json* j = f.any(name);
  if (!j) return f.error();
  const bool single =
      !j->is_array() || std::any_of(j->begin(), j->end(), [](const Json& x) { return x.is_number(); });
  if (one) *one = single;
  if (single) return raw_prompt(*j, name, model.tokenizer(), to.emplace_back());
  if (j->empty() || j->size() > most)
    return wrong_field(name, format("'{}' must have 1 to {} entries", name, most));
  for (const Json& prompt : *j)
    if (auto no = raw_prompt(prompt, name, model.tokenizer(), to.emplace_back())) return no;
  return {};
}

}  // namespace gimbal::api
