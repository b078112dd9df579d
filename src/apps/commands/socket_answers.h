// The answers of a server over its WebSocket, for `gimbal console`.
#pragma once
#include <memory>
#include <string>

#include "apps/commands/chat_loop.h"
#include "apps/commands/socket_client.h"
#include "base/json.h"

namespace gimbal {

struct ConsoleSettings {
  Url url;
  std::string api_key;
  Json fields = Json::object();  // of each message beside the conversation: model, max_tokens, ...
};

class SocketAnswers final : public ChatAnswers {
 public:
  explicit SocketAnswers(ConsoleSettings settings) : settings_(std::move(settings)) {}

  // Connects unless the connection still holds: a server closes one that was silent for long. Errors: those
  // of SocketClient::open().
  Status connect();
  // Ctrl-C cancels the answer on the server. Errors: those of the server and of the connection.
  Result<ChatReply> answer(Conversation&, const ChatSink&) override;
  std::string explanation() const override;
  // The last frame of the last answer: {"done": true, "finish_reason", "usage", ...}.
  const Json& last() const { return last_; }

 private:
  Result<ChatReply> read_answer(const ChatSink&);
  Status cancel();

  const ConsoleSettings settings_;
  std::unique_ptr<SocketClient> socket_;
  Json last_ = Json::object();
};

// "http://127.0.0.1:8080/ws/generate" of "127.0.0.1:8080", or of any ws, wss, http or https address. Errors:
// Usage.
Result<Url> socket_url(const std::string& text);

}  // namespace gimbal
