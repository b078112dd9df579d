// A client of HTTP that sends any bytes, for tests of a server.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gimbal::test {

struct HttpAnswer {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without the framing of chunks
  std::vector<std::string> chunks;             // as they were cut
  bool whole = false;
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(port), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~HttpClient() { leave(); }
  HttpClient(const HttpClient&) = delete;

  void leave() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  void end_of_requests() { shutdown(socket_, SHUT_WR); }
  // False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(size_t(n));
    }
    return true;
  }
  // Whether the server closes without another byte.
  bool closed() { return held_.empty() && !more(); }
  const std::string& held() const { return held_; }
  std::string take_held() { return std::exchange(held_, {}); }

  // The next answer; `head`: to a HEAD, which has no body.
  HttpAnswer answer(bool head = false) {
    HttpAnswer a;
    size_t end;
    while ((end = held_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return a;
    const std::string text = take(end + 4);
    EXPECT_EQ(text.substr(0, 9), "HTTP/1.1 ") << text;
    a.status = std::atoi(text.c_str() + 9);
    for (size_t at = text.find("\r\n") + 2; at + 2 < text.size();) {
      const size_t line = text.find("\r\n", at), colon = text.find(": ", at);
      std::string name = text.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](char c) { return char(tolower(c)); });
      a.headers[name] = text.substr(colon + 2, line - colon - 2);
      at = line + 2;
    }
    if (head || a.status == 204 || a.status == 304 || a.status == 100) return a.whole = true, a;
    if (a.headers.contains("transfer-encoding")) {
      read_chunks(a);
    } else if (a.headers.contains("content-length")) {
      const size_t n = size_t(std::stoul(a.headers["content-length"]));
      while (held_.size() < n && more()) {}
      a.whole = held_.size() >= n;
      a.body = take(n);
    } else {
      while (more()) {}
      a.whole = true;
      a.body = take(held_.size());
    }
    return a;
  }
  HttpAnswer ask(std::string_view bytes, bool head = false) {
    send(bytes);
    return answer(head);
  }

  // Reads until this has come; false: the server closed before.
  bool reads(std::string_view text) {
    while (held_.find(text) == std::string::npos)
      if (!more()) return false;
    return true;
  }

 private:
  bool more() {
    pollfd p{socket_, POLLIN, 0};
    if (poll(&p, 1, 300000) != 1) {  // a loaded machine under a sanitizer is slow
      ADD_FAILURE() << "the server said nothing for five minutes";
      return false;
    }
    char bytes[16384];
    const ssize_t n = recv(socket_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    held_.append(bytes, size_t(n));
    return true;
  }
  std::string take(size_t n) {
    std::string out = held_.substr(0, n);
    held_.erase(0, n);
    return out;
  }
  void read_chunks(HttpAnswer& a) {
    for (;;) {
      size_t end;
      while ((end = held_.find("\r\n")) == std::string::npos)
        if (!more()) return;
      const size_t n = std::stoul(take(end + 2), nullptr, 16);
      while (held_.size() < n + 2)
        if (!more()) return;
      const std::string chunk = take(n);
      EXPECT_EQ(take(2), "\r\n");
      if (n == 0) {
        a.whole = true;
        return;
      }
      a.chunks.push_back(chunk);
      a.body += chunk;
    }
  }

  int socket_;
  std::string held_;
};

inline std::string get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}
inline std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace gimbal::test
