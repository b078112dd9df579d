// The client's end of a WebSocket (server/http/websocket.h).
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fetch/byte_stream.h"
#include "server/http/websocket.h"

namespace gimbal {

class SocketClient {
 public:
  // Connects, and sends the key if there is one. Errors: those of ByteStream::connect(); Failed, with the
  // server's own words if it refuses.
  static Result<std::unique_ptr<SocketClient>> open(const Url&, const std::string& api_key);
  ~SocketClient();  // closes it

  Status send(std::string_view text);
  // The next text; nullopt: none arrived within `seconds`, or a signal did. Answers pings. Errors: Failed if
  // the socket is closed or broken.
  Result<std::optional<std::string>> receive(double seconds);

 private:
  SocketClient(std::unique_ptr<ByteStream> bytes, Url url);
  Status shake_hands(const std::string& api_key);

  std::unique_ptr<ByteStream> bytes_;
  const Url url_;
  std::string input_;
  http::MessageReader reader_;
  bool closed_ = false;
};

}  // namespace gimbal
