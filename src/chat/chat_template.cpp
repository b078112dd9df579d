#include "chat/chat_template.h"

#include <ctime>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal {
namespace {

struct Family {
  const char* token;  // a control token that no other family has
  const char* name;
  const char* source;
};

// First match counts.
constexpr Family kFamilies[] = {
    {"<|start_header_id|>", "llama3",
     "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
     "'<|end_header_id|>\\n\\n' + "
     "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + "
     "content %}"
     "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
    {"<|im_start|>", "chatml",
     "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
     "'<|im_end|>' + "
     "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"<start_of_turn>", "gemma",
     "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == "
     "'assistant' else "
     "'user') + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if "
     "add_generation_prompt %}"
     "{{ '<start_of_turn>model\\n' }}{% endif %}"},
    {"<|START_OF_TURN_TOKEN|>", "command-r",
     "{{ bos_token }}{% for message in messages %}{{ '<|START_OF_TURN_TOKEN|>' + ('<|CHATBOT_TOKEN|>' if "
     "message['role'] "
     "== 'assistant' else '<|SYSTEM_TOKEN|>' if message['role'] == 'system' else '<|USER_TOKEN|>') + "
     "message['content'] | "
     "trim + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"},
    {"<|start_of_role|>", "granite",
     "{% for message in messages %}{{ '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + "
     "message['content'] + "
     "'<|end_of_text|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}"},
    {"<|assistant|>", "phi3",
     "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' "
     "}}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"},
    {"[INST]", "mistral",
     "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ "
     "message['content'] + eos_token "
     "}}{% else %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}{% endfor %}"},
};

// Each tool as NAME(PARAMETER, ...) on a line; of each message its text on a line, and its calls as
// ToolCallFormat::Bare reads them. Short, because small models have little context.
constexpr const char* kPlain =
    "{% for tool in tools or [] %}{{ tool.function.name }}({{ tool.function.parameters.properties | list | "
    "join(', ') }})\n{% endfor %}"
    "{% for message in messages %}{% if message['content'] or not message.tool_calls %}"
    "{{ message['content'] + '\\n' }}{% endif %}{% for call in message.tool_calls or [] %}"
    "{{ '{\"name\": \"' + call.function.name + '\", \"parameters\": ' }}{{ call.function.arguments | tojson "
    "}}{{ "
    "'}\\n' }}{% endfor %}{% endfor %}";

bool has_some(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_array() && !object[name].empty();
}

// A member of a member, where both are there.
std::string text_at(const Json& j, const char* outer, const char* inner) {
  if (!j.is_object() || !j.contains(outer) || !j[outer].is_object()) return "";
  const Json& o = j[outer];
  return o.contains(inner) && o[inner].is_string() ? o[inner].get<std::string>() : "";
}

// Calls of an answer as kPlain has them, and a tool's result as a message of the user's: these templates know
// neither. Tools as lines NAME(PARAMETER, ...): DESCRIPTION, at the beginning of the first message, which any
// template writes.
void put_tools_in_text(Json& variables) {
  if (!variables.contains("messages") || !variables["messages"].is_array()) return;
  Json& messages = variables["messages"];
  for (Json& m : messages) {
    if (!m.is_object()) continue;
    std::string text =
        m.contains("content") && m["content"].is_string() ? m["content"].get<std::string>() : "";
    if (has_some(m, "tool_calls")) {
      for (const Json& call : m["tool_calls"]) {
        const bool has =
            call.is_object() && call.contains("function") && call["function"].contains("arguments");
        text += (text.empty() ? "" : "\n") + format("{{\"name\": {}, \"parameters\": {}}}",
                                                    dump(text_at(call, "function", "name")),
                                                    has ? dump(call["function"]["arguments"]) : "{}");
      }
      m["content"] = text;
      m.erase("tool_calls");
    }
    if (m.contains("role") && m["role"] == "tool") m["role"] = "user";
  }
  if (!has_some(variables, "tools")) return;
  std::string tools = "You can call these tools:\n";
  for (const Json& t : variables["tools"]) {
    std::string names;
    const Json* function = t.is_object() && t.contains("function") ? &t["function"] : nullptr;
    if (function && function->is_object() && function->contains("parameters") &&
        (*function)["parameters"].is_object() && (*function)["parameters"].contains("properties"))
      for (const auto& [name, schema] : (*function)["parameters"]["properties"].items())
        names += (names.empty() ? "" : ", ") + name;
    const std::string description = text_at(t, "function", "description");
    tools += format("{}({}){}{}\n", text_at(t, "function", "name"), names, description.empty() ? "" : ": ",
                    description);
  }
  tools += "To call one, answer with {\"name\": NAME, \"parameters\": {...}} and nothing else.\n\n";
  if (messages.empty() || !messages[0].is_object()) return;
  const bool has_text = messages[0].contains("content") && messages[0]["content"].is_string();
  messages[0]["content"] = tools + (has_text ? messages[0]["content"].get<std::string>() : "");
}

// Whether the text is one control token of the vocabulary.
bool has_control_token(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = true});
  return ids.size() == 1 && tokenizer.piece(ids[0], true) == text &&
         (tokenizer.is_control(ids[0]) ||
          tokenizer.encode(text, {.add_bos = false, .parse_special = false}).size() == 1);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::of(const Metadata& metadata, const Tokenizer& tokenizer) {
  Origin origin = Origin::File;
  std::string family, evidence;
  std::string source;
  if (const auto text = metadata.string("tokenizer.chat_template"); text && !text->empty()) {
    source = *text;
  } else {
    origin = Origin::None;
    source = kPlain;
    for (const Family& f : kFamilies)
      if (has_control_token(tokenizer, f.token)) {
        origin = Origin::Vocabulary;
        family = f.name;
        evidence = f.token;
        source = f.source;
        break;
      }
  }
  auto made = of_text(source, tokenizer);
  if (!made) {
    Error e = made.error();
    e.message = format("'tokenizer.chat_template': {}", e.message);
    return e;
  }
  made->origin = origin, made->family = std::move(family), made->evidence = std::move(evidence);
  if (origin != Origin::File) made->calls = ToolCallFormat{ToolCallFormat::Kind::Bare};
  return made;
}

Result<ChatTemplate> ChatTemplate::of_text(const std::string& source, const Tokenizer& tokenizer) {
  auto parsed = Template::parse(source);
  if (!parsed) return parsed.error();
  const bool knows_tools = source.find("tools") != source.npos;
  const auto text_of = [&](Token t) { return t >= 0 ? tokenizer.piece(t, true) : std::string(); };
  return ChatTemplate{std::move(*parsed),
                      Origin::File,
                      "",
                      "",
                      text_of(tokenizer.bos()),
                      text_of(tokenizer.eos()),
                      knows_tools ? ToolCallFormat::of(source) : ToolCallFormat{ToolCallFormat::Kind::Bare},
                      knows_tools};
}

namespace {

constexpr std::pair<const char*, const char*> kDates[] = {{"date_string", "%d %b %Y"},
                                                          {"datetime", "%b %d %Y"}};

std::string written(const std::tm& time, const char* pattern) {
  char text[64];
  return {text, std::strftime(text, sizeof text, pattern, &time)};
}

}  // namespace

Result<std::string> chat_template_text(const std::string& choice) {
  if (choice.empty()) return choice;
  const auto wrong = [](std::string message, std::string remedy) {
    return Error{Code::Usage, std::move(message), std::move(remedy), "", "chat_template"};
  };
  std::string text, names;
  for (const Family& f : kFamilies) {
    if (choice == f.name) return std::string(f.source);
    names += (names.empty() ? "" : ", ") + std::string(f.name);
  }
  if (choice.find("{%") != choice.npos || choice.find("{{") != choice.npos) {
    text = choice;
  } else {
    constexpr uint64_t kMostBytes = 1 << 20;
    auto read = read_file(choice, kMostBytes);
    if (!read)
      return wrong(format("there is no chat template {}: {}", gimbal::quoted(choice), read.error().message),
                   format("name a file, or one of {}", names));
    text = std::move(*read);
  }
  if (auto parsed = Template::parse(text); !parsed)
    return wrong(format("'chat_template' {}: {}", gimbal::quoted(choice), parsed.error().message), "");
  return text;
}

Result<Rendered> ChatTemplate::render(Json variables, const RenderOptions& options) const {
  if (variables.is_object()) {
    if (!variables.contains("bos_token")) variables["bos_token"] = bos;
    if (!variables.contains("eos_token")) variables["eos_token"] = eos;
    if (options.names_date)
      for (const auto& [name, pattern] : kDates)
        if (!variables.contains(name)) variables[name] = written(options.now, pattern);
    if (!knows_tools) put_tools_in_text(variables);
  }
  return rendering.render(variables, options);
}

std::string note_of_tools(const ChatTemplate& t, const Json& variables) {
  const bool any = variables.is_object() && has_some(variables, "tools");
  if (t.knows_tools || !any) return "";
  return "the chat template knows no tools: they stand in the plain form at the beginning of the first "
         "message";
}

std::string note_of(const ChatTemplate& t) {
  switch (t.origin) {
    case ChatTemplate::Origin::File: return "";
    case ChatTemplate::Origin::Vocabulary:
      return format("the file has no chat template; its vocabulary has '{}', so the template '{}' is used",
                    t.evidence, t.family);
    case ChatTemplate::Origin::None:
      return "the file has no chat template, and its vocabulary suggests none: the prompt is the plain text "
             "of the messages";
  }
  return "";
}

}  // namespace gimbal
