#include "chat/conversation.h"

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal {

std::string Conversation::system() const { return first() ? messages_[0].content : ""; }

void Conversation::set_system(std::string text) {
  if (first()) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::move(text)});
}

void Conversation::clear() { messages_.resize(first()); }

std::optional<std::string> Conversation::undo() {
  for (size_t i = messages_.size(); i > first(); i--)
    if (messages_[i - 1].role == "user") {
      std::string question = std::move(messages_[i - 1].content);
      messages_.resize(i - 1);
      return question;
    }
  return std::nullopt;
}

bool Conversation::forget_answer() {
  size_t i = messages_.size();
  while (i > first() && messages_[i - 1].role != "user") i--;
  if (i == first() || i == messages_.size()) return false;
  messages_.resize(i);
  return true;
}

bool Conversation::drop_oldest() {
  size_t end = first() + 1;
  while (end < messages_.size() && messages_[end].role != "user") end++;
  if (end >= messages_.size()) return false;
  messages_.erase(messages_.begin() + long(first()), messages_.begin() + long(end));
  return true;
}

std::string Conversation::to_json() const {
  Json v = {{"messages", chat_variables(messages_)["messages"]}};
  return v.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Conversation> Conversation::from_json(const std::string& text) {
  const auto wrong = [](const std::string& what) {
    return Error{Code::Usage, "this is no saved chat: " + what,
                 "it must hold {\"messages\": [{\"role\", \"content\"}, ...]}"};
  };
  const Json v = parse_json(text);
  if (v.is_discarded()) return wrong("it is not JSON");
  if (!v.is_object() || !v.contains("messages") || !v["messages"].is_array())
    return wrong("it has no list of messages");
  Conversation c;
  for (const Json& m : v["messages"]) {
    const auto field = [&](const char* name) {
      return m.is_object() && m.contains(name) && m[name].is_string() ? m[name].get<std::string>()
                                                                      : std::string();
    };
    const std::string role = field("role");
    const bool begins = c.messages_.empty();
    if (!m.is_object() || !m.contains("content") || !m["content"].is_string())
      return wrong("a message has no text as its content");
    if (role != "user" && role != "assistant" && !(role == "system" && begins))
      return wrong(format("a message has the role {}", gimbal::quoted(role)));
    c.messages_.push_back({role, field("content"), field("reasoning_content")});
  }
  return c;
}

}  // namespace gimbal
