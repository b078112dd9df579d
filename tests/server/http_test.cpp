// The framing of HTTP, byte by byte, with a handler that echoes.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/http/head.h"
#include "server/http/server.h"
#include "support/http_client.h"

namespace gimbal::test {
namespace {

// A stream of which a test gives each part.
class Script final : public http::Source {
 public:
  void pull(http::Outgoing& out) override {
    const std::lock_guard lock(mutex_);
    if (!begun_) out.head = http::Response{200, "", "text/event-stream"};
    begun_ = true;
    out.bytes.swap(bytes_);
    out.end = end_;
  }
  void gone() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  void say(const std::string& text, bool end) {
    {
      const std::lock_guard lock(mutex_);
      bytes_ += text;
      end_ = end;
    }
    exchange->wake();
  }
  bool is_gone() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return gone_; });
  }
  std::shared_ptr<http::Exchange> exchange;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string bytes_;
  bool begun_ = false, end_ = false, gone_ = false;
};

class Echo final : public http::Handler {
 public:
  void handle(http::Request r, std::shared_ptr<http::Exchange> e) override {
    if (r.path == "/throws") throw std::bad_alloc();
    if (r.path == "/stream") {
      const auto s = std::make_shared<Script>();
      s->exchange = e;
      {
        const std::lock_guard lock(mutex_);
        script_ = s;
        changed_.notify_all();
      }
      return e->stream(s);
    }
    e->answer({200, r.method + " " + r.path + " " + r.query + " " + r.body, "text/plain"});
  }
  http::Response refusal(int status, std::string_view, const std::string& why) override {
    return {status, why, "text/plain"};
  }
  std::shared_ptr<Script> script() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return script_ != nullptr; });
    return std::exchange(script_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Script> script_;
};

class Http : public testing::Test {
 protected:
  void start(http::Limits limits = {}) {
    auto made = http::Server::listen({.limits = limits}, echo);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
    thread = std::thread([this] { server->run(); });
  }
  void TearDown() override {
    if (!server) return;
    server->stop();
    thread.join();
  }
  uint16_t port() const { return server->port(); }

  Echo echo;
  std::unique_ptr<http::Server> server;
  std::thread thread;
};

TEST_F(Http, AnswersInOrderOverOneConnection) {
  start();
  HttpClient c(port());
  c.send(get("/a?x=1") + post("/b", "body") + get("/c%20d"));
  EXPECT_EQ(c.answer().body, "GET /a x=1 ");
  EXPECT_EQ(c.answer().body, "POST /b  body");
  EXPECT_EQ(c.answer().body, "GET /c d  ");
  // One byte at a time, with an empty line before it.
  for (char b : "\r\n" + post("/slow", "12345")) c.send({&b, 1});
  EXPECT_EQ(c.answer().body, "POST /slow  12345");
  EXPECT_EQ(c.ask("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n", true).headers["content-length"], "9");
  EXPECT_EQ(c.ask(get("/last", "Connection: close\r\n")).headers["connection"], "close");
  EXPECT_TRUE(c.closed());
}

TEST_F(Http, OldClientsAndTheirConnections) {
  start();
  HttpClient c(port());
  EXPECT_EQ(c.ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").headers["connection"], "keep-alive");
  EXPECT_EQ(c.ask("GET /b HTTP/1.0\r\n\r\n").body, "GET /b  ");
  EXPECT_TRUE(c.closed());
}

TEST_F(Http, Chunks) {
  start();
  HttpClient c(port());
  const std::string head = "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n";
  EXPECT_EQ(c.ask(head + "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n").body,
            "POST /c  abc0123456789");
  for (char b : head + "1\r\nz\r\n0\r\n\r\n") c.send({&b, 1});
  EXPECT_EQ(c.answer().body, "POST /c  z");
}

TEST_F(Http, BrokenFramingIsRefusedAndTheConnectionEnds) {
  start();
  const std::string h = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = h + "Transfer-Encoding: chunked\r\n\r\n";
  const std::vector<std::string> broken = {
      "GET / HTTP/1.1\r\n\r\n",                                // no Host
      "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",          // two
      "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",                   // none
      "GET / HTTP/1.1\nHost: a\n\n",                           // LF alone
      "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",  // a folded line
      "GET / HTTP/1.1\r\nHost : a\r\n\r\n",                    // a space before the colon
      "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",          // a control character
      "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",                    // two spaces
      "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
      "nonsense\r\n\r\n",
      "GET / HTTX/1.1\r\nHost: a\r\n\r\n",
      h + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
      h + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      h + "Content-Length: +1\r\n\r\nx",
      h + "Content-Length: 1, 1\r\n\r\nx",
      h + "Content-Length: -1\r\n\r\n",
      h + "Content-Length: 99999999999999999999\r\n\r\n",
      h + "Transfer-Encoding: gzip, chunked\r\n\r\n",
      h + "Transfer-Encoding: xchunked\r\n\r\n",
      h + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      chunked + "g\r\n",
      chunked + "1\nx\r\n0\r\n\r\n",
      chunked + "1\r\nxy\r\n0\r\n\r\n",
      chunked + "ffffffffffffffffff\r\n",
      chunked + "-1\r\n",
      chunked + "1 \r\nx\r\n",
  };
  for (const std::string& bytes : broken) {
    HttpClient c(port());
    const HttpAnswer a = c.ask(bytes + get("/hidden"));
    EXPECT_EQ(a.status, 400) << bytes;
    EXPECT_TRUE(c.closed()) << bytes;
  }
  HttpClient c(port());
  EXPECT_EQ(c.ask("GET / HTTP/2.0\r\nHost: a\r\n\r\n").status, 505);
  HttpClient d(port());
  EXPECT_EQ(d.ask("GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n").status, 417);
}

TEST_F(Http, TooMuch) {
  start({.head_bytes = 4096, .body_bytes = 1 << 20});
  const std::string many(5000, 'x');
  for (const std::string& head : {get("/" + many), get("/", "X: " + many + "\r\n")}) {
    HttpClient c(port());
    EXPECT_EQ(c.ask(head).status, 431);
    EXPECT_TRUE(c.closed());
  }
  std::string lines;
  for (int i = 0; i < 200; i++) lines += "X: 1\r\n";
  EXPECT_EQ(HttpClient(port()).ask(get("/", lines)).status, 431);
  // All trailers together have a bound, not each of them.
  std::string trailers;
  for (int i = 0; i < 300; i++) trailers += "X: " + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(HttpClient(port())
                .ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n" +
                     trailers + "\r\n")
                .status,
            431);
  // The answer reaches a client that sends all of it before it reads.
  const std::string body(20 << 20, 'y');
  HttpClient c(port());
  EXPECT_TRUE(c.send(post("/", body)));
  EXPECT_EQ(c.answer().status, 413);
  HttpClient d(port());
  EXPECT_TRUE(d.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
  for (int i = 0; i < 20; i++) EXPECT_TRUE(d.send("100000\r\n" + body.substr(0, 1 << 20) + "\r\n"));
  EXPECT_EQ(d.answer().status, 413);
  // As much as is allowed.
  const HttpAnswer most = HttpClient(port()).ask(post("/", body.substr(0, 1 << 20)));
  EXPECT_EQ(most.status, 200);
  EXPECT_EQ(most.body.size(), (1 << 20) + std::string("POST /  ").size());
}

TEST_F(Http, Continue) {
  start({.body_bytes = 1000});
  HttpClient c(port());
  EXPECT_EQ(c.ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n").status,
            100);
  EXPECT_EQ(c.ask("ab").body, "POST /a  ab");
  // A body that will not be taken is not asked for.
  EXPECT_EQ(
      c.ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\nExpect: 100-continue\r\n\r\n").status,
      413);
}

TEST_F(Http, SlowClientsAreClosed) {
  start({.head_seconds = 0.3, .body_seconds = 0.3, .idle_seconds = 0.3, .linger_seconds = 1});
  HttpClient silent(port());
  EXPECT_TRUE(silent.closed());
  HttpClient slow(port());
  EXPECT_EQ(slow.ask("GET / HT").status, 408);
  HttpClient body(port());
  EXPECT_EQ(body.ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab").status, 408);
  HttpClient idle(port());
  EXPECT_EQ(idle.ask(get("/a")).status, 200);
  EXPECT_TRUE(idle.closed());
}

// Those who send a little now and then, for ever.
TEST_F(Http, ManyWhoNeverFinishAreClosedInTime) {
  start({.head_seconds = 0.5, .body_seconds = 0.5, .linger_seconds = 0.5});
  std::vector<std::thread> slow;
  for (int i = 0; i < 16; i++)
    slow.emplace_back([this, i] {
      HttpClient c(port());
      c.send(i % 2 ? "GET / HTTP/1.1\r\nHost: x\r\n"
                   : "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
      while (c.send(i % 2 ? "X: 1\r\n" : "b")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const int status = c.answer().status;
      EXPECT_TRUE(status == 408 || status == 0) << status;  // 0: what was sent last took the answer away
    });
  for (int i = 0; i < 20; i++) EXPECT_EQ(HttpClient(port()).ask(get("/others")).status, 200);
  for (std::thread& t : slow) t.join();
}

TEST_F(Http, StreamsAsTheyCome) {
  start();
  HttpClient c(port());
  c.send(get("/stream") + get("/next"));
  const auto script = echo.script();
  ASSERT_TRUE(script);
  script->say("one", false);
  EXPECT_TRUE(c.reads("3\r\none\r\n"));
  script->say("two", false);
  EXPECT_TRUE(c.reads("3\r\ntwo\r\n"));
  script->say("", true);
  const HttpAnswer a = c.answer();
  EXPECT_EQ(a.body, "onetwo");
  EXPECT_TRUE(a.whole);
  EXPECT_EQ(c.answer().body, "GET /next  ");
  // Without chunks for those who do not know them.
  HttpClient old(port());
  old.send("GET /stream HTTP/1.0\r\n\r\n");
  const auto second = echo.script();
  ASSERT_TRUE(second);
  second->say("all", true);
  const HttpAnswer b = old.answer();
  EXPECT_EQ(b.body, "all");
  EXPECT_FALSE(b.headers.contains("transfer-encoding"));
  // Nothing but the connection's end tells them where the answer ends, whatever they ask for.
  HttpClient keeping(port());
  keeping.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto third = echo.script();
  ASSERT_TRUE(third);
  third->say("all", true);
  ASSERT_TRUE(keeping.reads("\r\n\r\nall"));
  // A server that kept the connection would answer here.
  keeping.send("GET /next HTTP/1.0\r\n\r\n");
  const HttpAnswer k = keeping.answer();
  EXPECT_EQ(k.body, "all");
  EXPECT_EQ(k.headers.at("connection"), "close");
  EXPECT_TRUE(keeping.closed());
}

TEST_F(Http, ALeavingClientIsNoticedBeforeAnythingIsWritten) {
  start();
  HttpClient c(port());
  c.send(get("/stream"));
  const auto script = echo.script();
  ASSERT_TRUE(script);
  c.leave();
  EXPECT_TRUE(script->is_gone());
}

TEST_F(Http, AClientThatReadsNothingHoldsNobodyUp) {
  start();
  HttpClient deaf(port());
  deaf.send(get("/stream"));
  const auto script = echo.script();
  ASSERT_TRUE(script);
  for (int i = 0; i < 100; i++) script->say(std::string(1 << 20, 'x'), false);
  EXPECT_EQ(HttpClient(port()).ask(get("/a")).status, 200);
  deaf.leave();
  EXPECT_TRUE(script->is_gone());
}

TEST_F(Http, AQuickQuestionIsAnsweredThoughNothingFollows) {
  start();
  HttpClient c(port());
  c.send(get("/a") + get("/b"));
  c.end_of_requests();
  EXPECT_EQ(c.answer().body, "GET /a  ");
  EXPECT_EQ(c.answer().body, "GET /b  ");
  EXPECT_TRUE(c.closed());
}

TEST_F(Http, AHandlerThatThrowsIsAnError) {
  start();
  HttpClient c(port());
  EXPECT_EQ(c.ask(get("/throws")).status, 500);
  EXPECT_EQ(c.ask(get("/a")).status, 200);
}

TEST_F(Http, DrainingCompletesWhatWasBegun) {
  start();
  HttpClient idle(port()), busy(port());
  EXPECT_EQ(idle.ask(get("/a")).status, 200);
  busy.send(get("/stream"));
  const auto script = echo.script();
  ASSERT_TRUE(script);
  script->say("one", false);
  EXPECT_TRUE(busy.reads("one"));
  server->drain();
  EXPECT_TRUE(idle.closed());
  script->say("two", true);
  EXPECT_EQ(busy.answer().body, "onetwo");
  thread.join();  // run() ended by itself
  thread = std::thread([] {});
}

TEST_F(Http, DrainingDoesNotWaitForTheRestOfARequest) {
  start();
  HttpClient head(port()), body(port()), chunks(port());
  head.send("POST /a HTTP/1.1\r\nHost: ");
  body.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1");
  chunks.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12");
  HttpClient other(port());
  EXPECT_EQ(other.ask(get("/a")).status, 200);  // so those before it have been read
  server->drain();
  for (HttpClient* c : {&head, &body, &chunks}) {
    const HttpAnswer a = c->answer();
    EXPECT_EQ(a.status, 503) << a.body;
    EXPECT_EQ(a.headers.at("connection"), "close");
  }
  thread.join();  // run() ended by itself, before any deadline
  thread = std::thread([] {});
}

TEST(HttpServer, AddressesThatAreNone) {
  Echo echo;
  EXPECT_EQ(http::Server::listen({.host = "nowhere"}, echo).error().code, Code::Usage);
  auto first = http::Server::listen({}, echo);
  ASSERT_TRUE(first);
  EXPECT_EQ(http::Server::listen({.port = (*first)->port()}, echo).error().code, Code::Failed);
  EXPECT_TRUE(http::is_loopback("127.0.0.1") && http::is_loopback("localhost") && http::is_loopback("::1"));
  EXPECT_FALSE(http::is_loopback("0.0.0.0") || http::is_loopback("::") || http::is_loopback("10.0.0.1"));
}

}  // namespace
}  // namespace gimbal::test
