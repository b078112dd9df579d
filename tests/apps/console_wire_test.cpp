// What gimbal console sends to a server, byte by byte: a proxy between both writes it down.
// Threads: the proxy has one.
#include <thread>

#include "support/serving.h"

namespace gimbal::test {
namespace {

// Forwards one connection to a server, and records the bytes of the client.
class Proxy {
 public:
  explicit Proxy(uint16_t server) : listens_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = address(0);
    socklen_t size = sizeof own;
    EXPECT_EQ(bind(listens_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(listens_, 1), 0);
    EXPECT_EQ(getsockname(listens_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this, server] { run(server); });
  }
  ~Proxy() {
    if (thread_.joinable()) end();
  }
  std::string url() const { return "ws://127.0.0.1:" + std::to_string(port_); }
  // All that the client sent, once both sides have ended.
  const std::string& sent() {
    thread_.join();
    close(listens_);
    return sent_;
  }

 private:
  static sockaddr_in address(uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET, a.sin_port = htons(port), a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
  }
  // If no client came.
  void end() {
    shutdown(listens_, SHUT_RDWR);
    sent();
  }
  void run(uint16_t server) {
    const int client = accept(listens_, nullptr, nullptr), to = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in there = address(server);
    if (client >= 0 && connect(to, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
      hand_on(client, to);
    if (client >= 0) close(client);
    close(to);
  }
  void hand_on(int client, int server) {
    pollfd ends[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    while ((ends[0].fd >= 0 || ends[1].fd >= 0) && poll(ends, 2, 120000) > 0)
      for (int i = 0; i < 2; i++) {
        if (!ends[i].revents) continue;
        const int other = i ? client : server;
        char piece[4096];
        const ssize_t n = recv(ends[i].fd, piece, sizeof piece, 0);
        if (n <= 0) {
          ends[i].fd = -1;
          shutdown(other, SHUT_WR);
          continue;
        }
        if (i == 0) sent_.append(piece, size_t(n));
        for (ssize_t done = 0, m; done < n; done += m)
          if ((m = send(other, piece + done, size_t(n - done), MSG_NOSIGNAL)) <= 0) break;
      }
  }

  int listens_;
  uint16_t port_ = 0;
  std::string sent_;
  std::thread thread_;
};

std::string headers_of(const std::string& sent) { return sent.substr(0, sent.find("\r\n\r\n")); }

// The kinds of the client's frames (RFC 6455, section 5.2), which are masked.
std::vector<int> frames_of(const std::string& sent) {
  std::vector<int> kinds;
  for (size_t at = sent.find("\r\n\r\n") + 4; at + 2 <= sent.size();) {
    kinds.push_back(sent[at] & 15);
    EXPECT_TRUE(sent[at + 1] & 0x80) << "a client masks its frames";
    size_t length = sent[at + 1] & 0x7f;
    at += 2;
    const int more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (more) length = 0;
    for (int i = 0; i < more && at < sent.size(); i++) length = length << 8 | uint8_t(sent[at++]);
    at += 4 + length;
  }
  return kinds;
}

TEST(ConsoleWire, AConversationEndsWithACloseFrame) {
  const Serving s;
  Proxy proxy(s.port);
  const Ran r = gimbal({"console", proxy.url(), "-p", "Hi", "-n", "3"});
  EXPECT_EQ(r.code, 0) << r.err;
  const std::string sent = proxy.sent();
  EXPECT_FALSE(contains(headers_of(sent), "Authorization")) << "there is no key";
  EXPECT_EQ(frames_of(sent), (std::vector<int>{1, 8})) << "a text, and the end";
}

TEST(ConsoleWire, ARefusedOneSendsNothingMore) {
  const Serving s({"--api-key", "secret"});
  Proxy proxy(s.port);
  const Ran r = gimbal({"console", proxy.url(), "-p", "Hi", "--api-key", "other"});
  EXPECT_EQ(r.code, 1);
  EXPECT_SAYS(r.err, "status 401");
  const std::string sent = proxy.sent();
  EXPECT_TRUE(contains(headers_of(sent), "Authorization: Bearer other"));
  EXPECT_EQ(frames_of(sent), std::vector<int>{}) << "it is no WebSocket";
}

}  // namespace
}  // namespace gimbal::test
