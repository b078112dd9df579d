#include "chat/chat_prompt.h"

#include <ctime>

#include "base/json.h"

namespace gimbal {

Json chat_variables(std::span<const ChatMessage> messages, bool thinks) {
  Json list = Json::array();
  for (const ChatMessage& m : messages) {
    Json one = {{"role", m.role}, {"content", m.content}};
    if (!m.reasoning.empty()) one["reasoning_content"] = m.reasoning;
    list.push_back(std::move(one));
  }
  Json v = {{"messages", std::move(list)}, {"add_generation_prompt", true}};
  if (!thinks) {
    v["enable_thinking"] = false;   // of Qwen3
    v["thinking"] = false;          // of Granite and DeepSeek
    v["reasoning_effort"] = "low";  // of gpt-oss, which cannot do without
  }
  return v;
}

RenderOptions local_time() {
  RenderOptions options;
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &options.now);
  options.names_date = true;
  return options;
}

Result<ChatPrompt> chat_prompt(const ChatTemplate& chat, const Tokenizer& tokenizer, const Json& variables,
                               const RenderOptions& options, bool parse_special) {
  auto rendered = chat.render(variables, options);
  if (!rendered) return rendered.error();
  ChatPrompt out;
  std::vector<TextRange> plain;
  if (!parse_special)
    for (const tmpl::Span& s : rendered->foreign) plain.push_back({s.begin, s.end});
  const std::string& text = rendered->text;
  if (tokenizer.adds_bos() && !text.starts_with(chat.bos)) out.tokens.push_back(tokenizer.bos());
  const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = true, .plain = plain});
  out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
  const size_t last = text.find_last_not_of(" \n");
  out.opens_reasoning = last != text.npos && std::string_view(text).substr(0, last + 1).ends_with("<think>");
  out.rendered = std::move(*rendered);
  return out;
}

}  // namespace gimbal
