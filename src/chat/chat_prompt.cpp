#include "chat/chat_prompt.h"

#include <algorithm>
#include <ctime>

#include "base/format.h"
#include "base/text.h"
#include "chat/picture_marks.h"

namespace gimbal {

Status set_variables(const Json& object, TemplateSettings& to) {
  if (!object.is_object())
    return Error{Code::Usage, "the variables of a chat template must be a JSON object",
                 "write {\"enable_thinking\": false}"};
  for (const auto& [name, value] : object.items()) {
    if (name == "messages" || name == "tools" || name == "add_generation_prompt")
      return Error{Code::Usage, format("the variable {} comes from the request itself", gimbal::quoted(name)),
                   "leave it out"};
    if (name.ends_with("_token"))
      return Error{Code::Usage,
                   format("the variable {} is a control token of the model", gimbal::quoted(name)),
                   "leave it out: the model's file has it"};
    if (name != "enable_thinking" && name != "thinking") {
      to.variables[name] = value;
    } else if (value.is_boolean()) {
      to.thinks = value.get<bool>();
    } else {
      return Error{Code::Usage, format("the variable {} must be true or false", gimbal::quoted(name)), ""};
    }
  }
  return Done{};
}

Json chat_variables(std::span<const ChatMessage> messages, const TemplateSettings& settings) {
  Json list = Json::array();
  for (const ChatMessage& m : messages) {
    Json one = {{"role", m.role}, {"content", m.content}};
    if (!m.reasoning.empty()) one["reasoning_content"] = m.reasoning;
    list.push_back(std::move(one));
  }
  Json v = settings.variables;
  v["messages"] = std::move(list), v["add_generation_prompt"] = true;
  if (!settings.thinks) return v;
  v["enable_thinking"] = *settings.thinks;               // of Qwen3
  v["thinking"] = *settings.thinks;                      // of Granite and DeepSeek
  if (!*settings.thinks) v["reasoning_effort"] = "low";  // of gpt-oss, which cannot do without
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
                               const RenderOptions& options, bool parse_special, PictureMarks pictures) {
  auto rendered = chat.render(variables, options);
  if (!rendered) return rendered.error();
  ChatPrompt out;
  const std::string& text = rendered->text;
  if (tokenizer.adds_bos() && !text.starts_with(chat.bos)) out.tokens.push_back(tokenizer.bos());
  const auto add_text = [&](size_t begin, size_t end) {
    std::vector<TextRange> plain;
    if (!parse_special)
      for (const tmpl::Span& s : rendered->foreign)
        if (s.end > begin && s.begin < end)
          plain.push_back({std::max(size_t(s.begin), begin) - begin, std::min(size_t(s.end), end) - begin});
    const auto ids = tokenizer.encode(std::string_view(text).substr(begin, end - begin),
                                      {.add_bos = false, .parse_special = true, .plain = plain});
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
  };
  const auto marks = find_picture_marks(text, pictures.begin, pictures.count);
  if (!marks) return marks.error();
  size_t at = 0;
  for (const PictureMark& mark : *marks) {
    if (mark.begin > at) add_text(at, mark.begin);
    out.tokens.push_back(kPictureToken);
    out.pictures.push_back(mark.picture);
    at = mark.end;
  }
  if (marks->empty() || at < text.size()) add_text(at, text.size());
  const size_t last = text.find_last_not_of(" \n");
  out.opens_reasoning = last != text.npos && std::string_view(text).substr(0, last + 1).ends_with("<think>");
  out.rendered = std::move(*rendered);
  return out;
}

Result<std::vector<Token>> next_turn(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                     const std::string& question, const RenderOptions& options) {
  static constexpr std::string_view kAnswer = "[the answer before]";
  const std::vector<ChatMessage> messages{
      {"user", "[a question]"}, {"assistant", std::string(kAnswer)}, {"user", question}};
  auto rendered = chat.render(chat_variables(messages), options);
  if (!rendered) return rendered.error();
  const std::string& text = rendered->text;
  const size_t at = text.find(kAnswer), begin = at + kAnswer.size();
  if (at == text.npos)
    return Error{Code::Usage, "the model's chat template leaves earlier answers out",
                 "give the message as plain text"};
  std::vector<TextRange> plain;
  for (const tmpl::Span& s : rendered->foreign)
    if (s.end > begin) plain.push_back({std::max(size_t(s.begin), begin) - begin, s.end - begin});
  return tokenizer.encode(std::string_view(text).substr(begin),
                          {.add_bos = false, .parse_special = true, .plain = plain});
}

}  // namespace gimbal
