// WebSockets: frames byte by byte against the examples of RFC 6455, hostile ones against a server, and
// GET /ws/generate over a scripted model.
#include "server/http/websocket.h"

#include <condition_variable>

#include "server/api_server.h"
#include "support/socket_client.h"

namespace gimbal::test {
namespace {

using http::MessageReader;
using http::Opcode;

std::string bytes_of(std::initializer_list<int> all) {
  std::string out;
  for (int b : all) out += char(b);
  return out;
}

// What a client's frames give: the texts and control frames, or the code of the fault.
struct Given {
  std::vector<std::pair<Opcode, std::string>> all;
  int fault = 0;
};
Given read(const std::string& bytes, size_t at_once = SIZE_MAX,
           MessageReader::From from = MessageReader::From::Client, size_t limit = 1 << 20) {
  MessageReader reader(from, limit);
  Given given;
  std::string input;
  for (size_t at = 0; at < bytes.size(); at += std::min(at_once, bytes.size() - at)) {
    input += bytes.substr(at, at_once);
    std::string_view rest = input;
    while (auto m = reader.next(rest)) given.all.emplace_back(m->kind, m->data);
    input.erase(0, input.size() - rest.size());
    if (reader.fault()) return given.fault = reader.fault()->code, given;
  }
  return given;
}

const std::string kHelloMasked = bytes_of({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58});
const std::string kHello = bytes_of({0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f});

TEST(WebSocketFrames, TheExamplesOfTheRfc) {
  EXPECT_EQ(http::accepted_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  const std::vector<std::pair<Opcode, std::string>> hello = {{Opcode::Text, "Hello"}};
  for (size_t at_once : {size_t(1), size_t(3), SIZE_MAX}) {
    EXPECT_EQ(read(kHelloMasked, at_once).all, hello);
    EXPECT_EQ(read(kHello, at_once, MessageReader::From::Server).all, hello);
    const std::string in_two = bytes_of({0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f});
    EXPECT_EQ(read(in_two, at_once, MessageReader::From::Server).all, hello);
    const std::string pong = bytes_of({0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58});
    EXPECT_EQ(read(pong, at_once).all[0], std::pair(Opcode::Pong, std::string("Hello")));
  }
  EXPECT_EQ(http::frame(Opcode::Text, "Hello"), kHello);
  EXPECT_EQ(http::frame(Opcode::Text, "Hello", 0x37fa213d), kHelloMasked);
  EXPECT_EQ(http::frame(Opcode::Ping, "Hello"), bytes_of({0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f}));
  EXPECT_EQ(http::frame(Opcode::Text, std::string(256, 'a')).substr(0, 4), bytes_of({0x81, 0x7e, 1, 0}));
  EXPECT_EQ(http::frame(Opcode::Text, std::string(65536, 'a')).substr(0, 10),
            bytes_of({0x81, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(WebSocketFrames, WhatIsWrittenIsRead) {
  for (size_t n : {0, 1, 125, 126, 127, 65535, 65536, 200000}) {
    std::string text(n, 'x');
    for (size_t i = 0; i < n; i++) text[i] = char('a' + i % 26);
    const Given given = read(http::frame(Opcode::Text, text, 0x01020304), 777);
    ASSERT_EQ(given.all.size(), 1u) << n << " " << given.fault;
    EXPECT_EQ(given.all[0].second, text);
  }
}

TEST(WebSocketFrames, ControlFramesMayStandBetweenFragments) {
  const std::string bytes =
      bytes_of({0x01, 0x81, 0, 0, 0, 0, 'a', 0x89, 0x81, 0, 0, 0, 0, 'p', 0x80, 0x81, 0, 0, 0, 0, 'b'});
  const Given given = read(bytes, 1);
  ASSERT_EQ(given.all.size(), 2u);
  EXPECT_EQ(given.all[0], std::pair(Opcode::Ping, std::string("p")));
  EXPECT_EQ(given.all[1], std::pair(Opcode::Text, std::string("ab")));
}

TEST(WebSocketFrames, HostileOnesAreRefusedByTheirCode) {
  const std::string mask = bytes_of({0, 0, 0, 0});
  const auto masked = [&](std::initializer_list<int> head, const std::string& payload = "") {
    return bytes_of(head) + mask + payload;
  };
  const std::pair<std::string, int> wrong[] = {
      {kHello, 1002},                                                 // not masked
      {masked({0xc1, 0x81}, "a"), 1002},                              // RSV1: compression
      {masked({0x91, 0x81}, "a"), 1002},                              // RSV3
      {masked({0x83, 0x81}, "a"), 1002},                              // opcode 3
      {masked({0x8b, 0x80}), 1002},                                   // opcode 11
      {masked({0x80, 0x81}, "a"), 1002},                              // a continuation of nothing
      {masked({0x01, 0x81}, "a") + masked({0x81, 0x81}, "b"), 1002},  // a text inside a text
      {masked({0x09, 0x80}), 1002},                                   // a cut ping
      {masked({0x89, 0xfe, 0, 126}, std::string(126, 'a')), 1002},    // a long ping
      {masked({0x81, 0xfe, 0, 125}, std::string(125, 'a')), 1002},    // 125 in two bytes
      {masked({0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff}), 1002},     // 65535 in eight bytes
      {masked({0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}), 1002},        // the highest bit of a length
      {masked({0x82, 0x81}, "a"), 1003},                              // binary
      {masked({0x81, 0x81}, "\xff"), 1007},                           // not UTF-8
      {masked({0x81, 0x82}, "\xc3("), 1007},                          // not UTF-8
      {masked({0x81, 0x83}, "\xed\xa0\x80"), 1007},                   // a surrogate
      {masked({0x01, 0x81}, "\xc3") + masked({0x80, 0x80}), 1007},    // half a character at the end
      {masked({0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 1}), 1009},        // more than 1 MB: before it comes
      {masked({0x88, 0x81}, "a"), 1002},                              // half a close code
      {masked({0x88, 0x82}, bytes_of({0x03, 0xe7})), 1002},           // 999
      {masked({0x88, 0x82}, bytes_of({0x03, 0xed})), 1002},           // 1005 is never sent
      {masked({0x88, 0x83}, bytes_of({0x03, 0xe8, 0xff})), 1007},     // a reason that is not UTF-8
  };
  for (size_t i = 0; i < std::size(wrong); i++)
    for (size_t at_once : {size_t(1), SIZE_MAX})
      EXPECT_EQ(read(wrong[i].first, at_once).fault, wrong[i].second) << i;
  // A character may be cut between fragments, and a message in fragments has the limit of one.
  EXPECT_EQ(read(masked({0x01, 0x81}, "\xc3") + masked({0x80, 0x81}, "\xa9")).all[0].second, "é");
  EXPECT_EQ(read(masked({0x01, 0x83}, "abc") + masked({0x80, 0x83}, "def"), 1, MessageReader::From::Client, 5)
                .fault,
            1009);
  EXPECT_EQ(read(kHelloMasked, 1, MessageReader::From::Server).fault, 1002) << "a server never masks";
}

// Answers each message with itself, or not before it is told to.
class EchoSocket final : public http::Messages {
 public:
  void handle(uint64_t, std::string text, std::shared_ptr<http::Exchange> e) override {
    if (text == "throw") throw std::bad_alloc();
    if (text == "silent") return e->answer({200, ""});
    if (text == "wait") {
      const std::lock_guard lock(mutex_);
      waits_ = e;
      changed_.notify_all();
      return;
    }
    e->answer({200, text});
  }
  bool take_early(uint64_t, std::string_view text) override {
    if (text != "release") return false;
    exchange()->answer({200, "released"});
    return true;
  }
  http::Response failed() override { return {500, "it failed"}; }
  std::shared_ptr<http::Exchange> exchange() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return waits_ != nullptr; });
    return std::exchange(waits_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<http::Exchange> waits_;
};

class SocketServer final : public http::Handler {
 public:
  void handle(http::Request r, std::shared_ptr<http::Exchange> e) override {
    http::Response accepted;
    if (auto no = http::accept_socket(r, accepted))
      return e->answer({no->status, no->why, "text/plain", accepted.headers});
    e->open(std::move(accepted), echo);
  }
  http::Response refusal(int status, std::string_view, const std::string& why) override {
    return {status, why, "text/plain"};
  }
  std::shared_ptr<EchoSocket> echo = std::make_shared<EchoSocket>();
};

class WebSocketServer : public testing::Test {
 protected:
  void start(http::Limits limits = {}) {
    auto made = http::Server::listen({.limits = limits}, handler);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
    thread = std::thread([this] { server->run(); });
  }
  void TearDown() override {
    if (!server) return;
    server->stop();
    thread.join();
  }
  SocketPeer peer() { return SocketPeer(server->port(), "/"); }

  SocketServer handler;
  std::unique_ptr<http::Server> server;
  std::thread thread;
};

TEST_F(WebSocketServer, AnswersMessagesInOrder) {
  start();
  SocketPeer p(server->port(), "/");
  p.http.send(http::frame(Opcode::Text, "one", 1) + http::frame(Opcode::Text, "silent", 2) +
              http::frame(Opcode::Text, "throw", 3) + http::frame(Opcode::Text, "größer", 4));
  EXPECT_EQ(p.next().data, "one");
  EXPECT_EQ(p.next().data, "it failed");
  EXPECT_EQ(p.next().data, "größer");
  p.http.send(http::frame(Opcode::Ping, "are you there", 5));
  const http::SocketMessage pong = p.next();
  EXPECT_EQ(pong.kind, Opcode::Pong);
  EXPECT_EQ(pong.data, "are you there");
  // A long message, byte by byte.
  const std::string frame = http::frame(Opcode::Text, std::string(300, 'x'), 6);
  for (char c : frame) p.http.send({&c, 1});
  EXPECT_EQ(p.next().data, std::string(300, 'x'));
  p.http.send(http::close_frame({1000, "bye"}, 7));
  const http::SocketMessage end = p.next();
  EXPECT_EQ(end.kind, Opcode::Close);
  EXPECT_EQ(end.code, 1000);
  EXPECT_TRUE(p.http.closed());
}

TEST_F(WebSocketServer, ControlFramesAreReadWhileAMessageIsAnswered) {
  start();
  SocketPeer p(server->port(), "/");
  p.say("wait");
  p.http.send(http::frame(Opcode::Ping, "x", 1));
  EXPECT_EQ(p.next().kind, Opcode::Pong);
  p.say("next");
  p.say("release");
  EXPECT_EQ(p.next().data, "released") << "it concerns the answer in progress";
  EXPECT_EQ(p.next().data, "next");
}

TEST_F(WebSocketServer, ClosesWithTheCodeOfTheFault) {
  http::Limits limits;
  limits.body_bytes = 1000;
  start(limits);
  const std::pair<std::string, int> wrong[] = {
      {kHello, 1002},
      {http::frame(Opcode::Binary, "x", 1), 1003},
      {http::frame(Opcode::Text, "\xff", 1), 1007},
      {http::frame(Opcode::Text, std::string(1001, 'x'), 1), 1009},
  };
  for (const auto& [bytes, code] : wrong) {
    SocketPeer p(server->port(), "/");
    p.http.send(bytes);
    const http::SocketMessage end = p.next();
    EXPECT_EQ(end.kind, Opcode::Close);
    EXPECT_EQ(end.code, code);
    EXPECT_TRUE(p.http.closed());
  }
  SocketPeer flood(server->port(), "/");
  flood.say("wait");
  for (int i = 0; i < 9; i++) flood.say("more");
  EXPECT_EQ(flood.next().code, 1008) << "no message is read without end";
}

TEST_F(WebSocketServer, ASilentClientIsAskedAndThenLeft) {
  http::Limits limits;
  limits.idle_seconds = 1.2, limits.body_seconds = 0.5;
  start(limits);
  SocketPeer silent(server->port(), "/");
  EXPECT_EQ(silent.next().kind, Opcode::Ping);
  EXPECT_EQ(silent.next().code, 1008);
  SocketPeer slow(server->port(), "/");
  slow.http.send(kHelloMasked.substr(0, 8));
  http::SocketMessage m = slow.next();
  while (m.kind == Opcode::Ping) m = slow.next();
  EXPECT_EQ(m.code, 1008) << "a message must arrive in time";
}

TEST_F(WebSocketServer, RefusesWrongHandshakes) {
  start();
  const auto ask = [&](const std::string& bytes) { return HttpClient(server->port()).ask(bytes); };
  const HttpAnswer plain = ask(get("/"));
  EXPECT_EQ(plain.status, 426);
  EXPECT_EQ(plain.headers.at("upgrade"), "websocket");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = upgrade("/");
    return ask(text.replace(text.find(from), from.size(), to)).status;
  };
  EXPECT_EQ(with("Version: 13", "Version: 12"), 426);
  EXPECT_EQ(with("keep-alive, Upgrade", "keep-alive"), 426);
  EXPECT_EQ(with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ="), 400);
  EXPECT_EQ(with("dGhlIHNhbXBsZSBub25jZQ==", "!GhlIHNhbXBsZSBub25jZQ=="), 400);
  EXPECT_EQ(with("HTTP/1.1", "HTTP/1.0"), 426) << "RFC 9110, section 7.8";
}

TEST_F(WebSocketServer, DrainsWithACloseFrame) {
  start();
  SocketPeer idle(server->port(), "/"), busy(server->port(), "/");
  busy.say("wait");
  const auto exchange = handler.echo->exchange();
  server->drain();
  EXPECT_EQ(idle.next().code, 1001);
  exchange->answer({200, "the last words"});
  EXPECT_EQ(busy.next().data, "the last words");
  EXPECT_EQ(busy.next().code, 1001);
  idle.http.leave(), busy.http.leave();
  thread.join();  // run() returns when all is answered
  thread = std::thread([] {});
}

class GenerateSocket : public ApiTest {
 protected:
  static Json last(const std::vector<std::string>& frames) {
    return Json::parse(frames.back(), nullptr, false);
  }
};

TEST_F(GenerateSocket, PiecesOfTextThenDone) {
  service().says("There was a dog.");
  SocketPeer p(server->port());
  for (int i = 0; i < 2; i++) {  // several messages on one socket
    p.say(R"({"model": "stories", "prompt": "Once", "max_tokens": 50, "temperature": 0.5, "top_k": 3})");
    const auto frames = p.answer();
    EXPECT_EQ(frames.back(), R"({"done":true})");
    EXPECT_GT(frames.size(), 3u) << "one for each token";
    std::string text;
    for (size_t k = 0; k + 1 < frames.size(); k++) text += frames[k];
    EXPECT_EQ(text, "There was a dog.");
  }
  ASSERT_EQ(service().asked().size(), 2u);
  EXPECT_EQ(service().asked()[0].sampler.top_k, 3);
  EXPECT_EQ(service().asked()[0].max_tokens, 50);
}

TEST_F(GenerateSocket, EventsHaveTheReasoningAndTheNumbers) {
  service().says("<think>hm</think>yes");
  SocketPeer p(server->port());
  p.say(R"({"messages": [{"role": "user", "content": "Hi"}], "system": "Be kind.", "events": true})");
  auto frames = p.answer();
  std::string text, reasoning;
  for (size_t i = 0; i + 1 < frames.size(); i++) {
    const Json j = Json::parse(frames[i]);
    text += j.value("text", ""), reasoning += j.value("reasoning", "");
  }
  EXPECT_EQ(text, "yes");
  EXPECT_EQ(reasoning, "hm");
  const Json end = last(frames);
  EXPECT_EQ(end["finish_reason"], "stop");
  EXPECT_EQ(end["model"], "stories");
  EXPECT_EQ(end["usage"]["prompt_tokens"], service().asked()[0].prompt.size());
  EXPECT_GT(end["usage"]["completion_tokens"], 3);
  const std::string prompt = models.model->tokenizer().decode(service().asked()[0].prompt);
  EXPECT_LT(prompt.find("Be kind."), prompt.find("Hi"));
  p.say(R"({"prompt": "Hi", "stream": false})");
  frames = p.answer();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(last(frames)["text"], "yes");
  p.say(R"({"prompt": "Once", "raw": true})");
  p.answer();
  EXPECT_EQ(service().asked().back().prompt, models.model->tokenizer().encode("Once"));
}

TEST_F(GenerateSocket, ErrorsNameTheFieldAndTheSocketStaysOpen) {
  service().says("yes");
  SocketPeer p(server->port());
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"prompt": "Hi", "temperature": 3})", "temperature"},
      {R"({"prompt": "Hi", "temprature": 1})", "temprature"},
      {R"({"prompt": "Hi", "messages": [{"role": "user", "content": "x"}]})", "prompt"},
      {R"({"max_tokens": 3})", "prompt"},
      {R"({"prompt": "Hi", "raw": true, "system": "x"})", "system"},
      {R"({"prompt": "Hi", "n": 2})", "n"},
  };
  for (const auto& [message, field] : wrong) {
    p.say(message);
    const auto frames = p.answer();
    ASSERT_EQ(frames.size(), 1u) << message;
    EXPECT_EQ(last(frames)["param"], field) << frames[0];
  }
  for (const char* broken : {"", "{", "[1]", "\"x\""}) {
    p.say(broken);
    EXPECT_TRUE(last(p.answer()).contains("error")) << broken;
  }
  models.second = "other";
  p.say(R"({"model": "nothing", "prompt": "Hi"})");
  EXPECT_EQ(last(p.answer())["code"], "model_not_found");
  service().refuses({Code::OutOfMemory, "full", "", reason::kQueueFull});
  p.say(R"({"model": "stories", "prompt": "Hi"})");
  const Json busy = last(p.answer());
  EXPECT_EQ(busy["code"], "queue_full");
  EXPECT_EQ(busy["retry_after"], 1);
}

TEST_F(GenerateSocket, ClosingItCancelsTheText) {
  service().says("Once upon a time", true);
  {
    SocketPeer p(server->port());
    p.say(R"({"prompt": "Hi"})");
    EXPECT_EQ(p.next().kind, Opcode::Text);
    p.http.send(http::close_frame({1000, ""}, 1));
    while (p.next().kind != Opcode::Close) {}
  }
  EXPECT_TRUE(service().was_cancelled());
}

TEST_F(GenerateSocket, AMessageCancelsTheAnswerInProgress) {
  service().says("Once upon a time", true);
  SocketPeer p(server->port());
  p.say(R"({"prompt": "Hi"})");
  EXPECT_EQ(p.next().kind, Opcode::Text);
  p.say(R"({"cancel": true})");
  EXPECT_EQ(last(p.answer())["code"], "cancelled");
  EXPECT_TRUE(service().was_cancelled());
  p.say(R"({"cancel": true})");  // too late: no answer
  service().says("yes");
  p.say(R"({"prompt": "Hi"})");
  EXPECT_EQ(p.answer().front(), "y") << "the socket serves on";
}

TEST_F(GenerateSocket, KeysAndOriginsAsOnEveryPath) {
  stop();
  start({.keys = {"secret"}, .hosts = api::loopback_names()});
  const auto status = [&](const std::string& headers) {
    return HttpClient(server->port()).ask(upgrade("/ws/generate", headers), true).status;
  };
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("Authorization: Bearer wrong\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearer secret\r\n"), 101);
  EXPECT_EQ(status("x-api-key: secret\r\n"), 101);
  EXPECT_EQ(status("Authorization: Bearer secret\r\nOrigin: https://evil.example\r\n"), 403);
  EXPECT_EQ(status("Authorization: Bearer secret\r\nOrigin: null\r\n"), 403);
  EXPECT_EQ(status("Authorization: Bearer secret\r\nOrigin: http://localhost\r\n"), 101) << "its own page";
  std::string rebound = upgrade("/ws/generate", "Authorization: Bearer secret\r\n");
  rebound.replace(rebound.find("localhost"), 9, "evil.example");
  EXPECT_EQ(ask(rebound).status, 403);
  EXPECT_EQ(ask(post("/ws/generate", "{}", "Authorization: Bearer secret\r\n")).status, 405);
}

TEST_F(GenerateSocket, IsRefusedWhileTheServerEnds) {
  SocketPeer p(server->port());
  services.draining = true;
  p.say(R"({"prompt": "Hi"})");
  EXPECT_EQ(last(p.answer())["error"], "the server is about to end");
  EXPECT_EQ(ask(upgrade("/ws/generate")).status, 503);
}

}  // namespace
}  // namespace gimbal::test
