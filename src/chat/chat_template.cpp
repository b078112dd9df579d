#include "chat/chat_template.h"

#include "base/format.h"
#include "base/json.h"

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
  auto parsed = Template::parse(source);
  if (!parsed) {
    Error e = parsed.error();
    e.message = format("'tokenizer.chat_template': {}", e.message);
    return e;
  }
  const auto text_of = [&](Token t) { return t >= 0 ? tokenizer.piece(t, true) : std::string(); };
  return ChatTemplate{
      std::move(*parsed),
      origin,
      family,
      evidence,
      text_of(tokenizer.bos()),
      text_of(tokenizer.eos()),
      origin == Origin::File ? ToolCallFormat::of(source) : ToolCallFormat{ToolCallFormat::Kind::Bare}};
}

Result<Rendered> ChatTemplate::render(Json variables, const RenderOptions& options) const {
  if (variables.is_object()) {
    if (!variables.contains("bos_token")) variables["bos_token"] = bos;
    if (!variables.contains("eos_token")) variables["eos_token"] = eos;
  }
  return rendering.render(variables, options);
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
