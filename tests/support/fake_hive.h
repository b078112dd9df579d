// A hive for tests: it keeps the reports of worker processes, and answers by a script.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace gimbal::test {

class FakeHive {
 public:
  enum Way {
    Answers,          // 200, and a short message
    Refuses,          // 503
    KnowsHeartbeats,  // 404 for everything else
    LeadsAway,        // a redirection to `elsewhere`
    TalksNonsense,    // bytes that are no HTTP
    SaysNothing,      // takes the request and never answers
    NeverEnds,        // headers, and then a body without an end
    EndlessHeaders,
    HangsUp,
  };
  struct Call {
    std::string path;
    nlohmann::ordered_json body;
  };

  explicit FakeHive(Way way = Answers, uint16_t port = 0) : way(way) {
    const int on = 1;
    sockaddr_in at{};
    at.sin_family = AF_INET, at.sin_port = htons(port), at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    socklen_t size = sizeof at;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    EXPECT_EQ(listen(listener_, 16), 0);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~FakeHive() {
    ending_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }
  std::vector<Call> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  // All calls, as soon as there are `n` with this end of their path.
  std::vector<Call> wait_for(size_t n, const std::string& path) {
    std::unique_lock lock(mutex_);
    const auto there = [&] {
      size_t found = 0;
      for (const Call& c : calls_) found += c.path.ends_with(path);
      return found >= n;
    };
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(2), there)) << n << " calls of " << path;
    return calls_;
  }

  std::atomic<Way> way;
  std::string elsewhere;  // before it is asked

 private:
  // Each connection has one request, and a thread of its own: some never end.
  void accept_all() {
    std::vector<std::thread> all;
    while (!ending_) {
      const int c = accept(listener_, nullptr, nullptr);
      if (c >= 0) all.emplace_back([this, c] { serve(c), close(c); });
    }
    for (std::thread& t : all) t.join();
  }

  // False: there will be nothing.
  bool readable(int c) {
    for (pollfd p{c, POLLIN, 0}; !ending_;)
      if (poll(&p, 1, 20) > 0) return true;
    return false;
  }

  void serve(int c) {
    std::string text;
    size_t body = 0, length = 0;
    for (char bytes[4096]; body == 0 || text.size() < body + length;) {
      const ssize_t n = readable(c) ? recv(c, bytes, sizeof bytes, 0) : 0;
      if (n <= 0) return;
      text.append(bytes, size_t(n));
      const size_t end = text.find("\r\n\r\n"), field = text.find("Content-Length: ");
      if (body || end == text.npos) continue;
      body = end + 4;
      length = field < end ? std::stoul(text.substr(field + 16)) : 0;
    }
    Call call{text.substr(5, text.find(' ', 5) - 5), nlohmann::ordered_json::parse(text.substr(body))};
    EXPECT_EQ(text.substr(0, 5), "POST ");
    EXPECT_NE(text.find("\r\nContent-Type: application/json\r\n"), text.npos) << text;
    const Way as = way;
    const bool known = call.path.ends_with("/v1/heartbeat");
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    changed_.notify_all();
    answer(c, as, known);
  }

  void answer(int c, Way as, bool heartbeat) {
    const auto say = [&](const std::string& s) {
      return send(c, s.data(), s.size(), MSG_NOSIGNAL) == ssize_t(s.size());
    };
    switch (as) {
      case Answers: say("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"message\":\"ok\"}"); break;
      case Refuses: say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"); break;
      case KnowsHeartbeats:
        say(heartbeat ? "HTTP/1.1 204 Heard\r\n\r\n" : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        break;
      case LeadsAway:
        say("HTTP/1.1 307 There\r\nLocation: " + elsewhere + "\r\nContent-Length: 0\r\n\r\n");
        break;
      case TalksNonsense: say("\x16\x03\x01 what is this? \r\n\xff\xfe\r\n\r\n"); break;
      case SaysNothing:
        if (char byte; readable(c)) { EXPECT_LE(recv(c, &byte, 1, 0), 0) << "more than the request"; }
        break;
      case NeverEnds:
        say("HTTP/1.1 200 OK\r\n\r\n");
        while (!ending_ && say(std::string(1 << 16, 'x'))) {}
        break;
      case EndlessHeaders:
        say("HTTP/1.1 200 OK\r\n");
        while (!ending_ && say("X-More: " + std::string(1000, 'x') + "\r\n")) {}
        break;
      case HangsUp: break;
    }
    shutdown(c, SHUT_WR);
  }

  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  std::thread thread_;
};

}  // namespace gimbal::test
