// A client of WebSockets that sends any frames, for tests of a server.
#pragma once
#include "server/http/websocket.h"
#include "support/http_client.h"

namespace gimbal::test {

// A request for a WebSocket, as RFC 6455 shows it.
inline std::string upgrade(const std::string& path, const std::string& headers = "") {
  return get(path,
             "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                 headers);
}

class SocketPeer {
 public:
  explicit SocketPeer(uint16_t port, const std::string& path = "/ws/generate",
                      const std::string& headers = "")
      : http(port) {
    // The answer has no body, as one to a HEAD.
    const HttpAnswer a = http.ask(upgrade(path, headers), true);
    EXPECT_EQ(a.status, 101);
    EXPECT_EQ(a.headers.count("sec-websocket-accept") ? a.headers.at("sec-websocket-accept") : "",
              "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // of the RFC, section 1.3
    EXPECT_EQ(a.headers.count("content-length") + a.headers.count("transfer-encoding"), 0u);
  }
  bool say(std::string_view text) { return http.send(http::frame(http::Opcode::Text, text, 0x37fa213d)); }
  // The next message or control frame; kind Close with code 1: the connection ended without one.
  http::SocketMessage next() {
    for (;;) {
      std::string bytes = http.take_held();
      held_ += bytes;
      std::string_view rest = held_;
      auto m = reader_.next(rest);
      held_.erase(0, held_.size() - rest.size());
      EXPECT_FALSE(reader_.fault()) << reader_.fault()->why;
      if (m) return *m;
      if (http.closed()) return {http::Opcode::Close, "", 1};
    }
  }
  // Texts until a frame that has "done"; the last one included.
  std::vector<std::string> answer() {
    std::vector<std::string> all;
    do {
      const http::SocketMessage m = next();
      if (m.kind == http::Opcode::Ping) continue;
      if (m.kind != http::Opcode::Text) {
        ADD_FAILURE() << "the socket was closed: " << m.code << " " << m.data;
        break;
      }
      all.push_back(m.data);
    } while (all.empty() || all.back().find("\"done\":true") == std::string::npos);
    return all;
  }

  HttpClient http;

 private:
  std::string held_;
  http::MessageReader reader_{http::MessageReader::From::Server, 1 << 24};
};

}  // namespace gimbal::test
