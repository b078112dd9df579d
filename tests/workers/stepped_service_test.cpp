// The front's side of a worker in single steps: the worker is the other end of a socket, which the test
// reads, answers and closes, and the clock is the test's own.
// Threads: a call waits in a thread of its own.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "workers/remote_service.h"

namespace gimbal::test {
namespace {

class SteppedFront {
 public:
  explicit SteppedFront(int attempts) {
    WorkerSettings s;
    s.vocabulary = 97, s.attempts = attempts;
    auto made = RemoteService::start_stepped(
        std::move(s),
        {[this] { return now_; },
         [this](const std::vector<std::string>&, std::span<const int>) -> Result<WorkerProcess> {
           int ends[2];
           EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
           worker_ = ends[1];
           return WorkerProcess(ends[0], ++started, [] { return "ended by signal 9"; });
         }});
    EXPECT_TRUE(made);
    service = std::move(*made);
  }
  ~SteppedFront() {
    service.reset();
    end_worker();
  }

  void turn() { service->turn(); }
  // The worker ends; then time passes until the next one starts, if one does.
  void lose_worker() {
    end_worker();
    turn();
    now_ += std::chrono::hours(1);
    turn();
  }
  void say(const wire::FromWorker& message) const {
    const std::string line = encode(message) + "\n";
    EXPECT_EQ(send(worker_, line.data(), line.size(), MSG_NOSIGNAL), ssize_t(line.size()));
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }
  // Steps until the worker has a call of SavedPrompts::kept(); nothing: none comes.
  std::optional<wire::Save> wait_for_call() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < end) {
      turn();
      if (auto call = heard<wire::Save>()) return call;
      std::this_thread::yield();
    }
    return std::nullopt;
  }
  // The next message of this kind that the worker has; earlier ones are dropped.
  template <class Message>
  std::optional<Message> heard() {
    char piece[1 << 12];
    for (ssize_t n; (n = recv(worker_, piece, sizeof piece, MSG_DONTWAIT)) > 0;)
      unread_.append(piece, size_t(n));
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      const auto message = wire::decode_to_worker(std::string_view(unread_).substr(0, end));
      unread_.erase(0, end + 1);
      EXPECT_TRUE(message);
      if (const auto* it = message ? std::get_if<Message>(&*message) : nullptr) return *it;
    }
    return std::nullopt;
  }
  // A service that has ended refuses requests.
  bool has_ended() const {
    GenerationSink sink;
    sink.failed = [](const Error&) {};
    GenerationRequest r;
    r.prompt = {1}, r.max_tokens = 1;
    return !service->submit(new_request_id(), std::move(r), std::move(sink));
  }

  int started = 0;
  std::unique_ptr<RemoteService> service;

 private:
  void end_worker() {
    if (worker_ >= 0) close(std::exchange(worker_, -1));
    unread_.clear();
  }

  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  int worker_ = -1;
  std::string unread_;
};

TEST(SteppedService, EndsAfterAsManyFailedStartsInARow) {
  SteppedFront front(3);
  for (int i = 0; i < 2; i++) front.lose_worker();
  EXPECT_EQ(front.started, 3);
  EXPECT_FALSE(front.has_ended());
  front.lose_worker();
  EXPECT_EQ(front.started, 3);
  EXPECT_TRUE(front.has_ended());
}

// An exchange may mend what made the starts fail: a new driver, or room in memory.
TEST(SteppedService, AnExchangeForgetsFailedStarts) {
  SteppedFront front(3);
  for (int i = 0; i < 2; i++) front.lose_worker();
  front.service->replace();
  front.turn();
  EXPECT_EQ(front.started, 4);
  for (int i = 0; i < 2; i++) front.lose_worker();
  EXPECT_EQ(front.started, 6);
  EXPECT_FALSE(front.has_ended());
  front.lose_worker();
  EXPECT_TRUE(front.has_ended());
}

// Saved prompts are lost with their worker, and calls that it had fail. Those that wait for the first ready
// worker have lost nothing.
TEST(SteppedService, ACallThatNoWorkerHadWaitsForTheNextOne) {
  std::future<Result<int>> call;
  std::promise<void> begun;
  SteppedFront front(1 << 30);
  call = std::async(std::launch::async, [&] {
    begun.set_value();
    return front.service->kept(std::vector<Token>{4, 5, 6});
  });
  begun.get_future().wait();
  // The call comes during one of these.
  const auto is_over = [&] { return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  for (int losses = 0; losses < 3000 && !is_over(); losses++) front.lose_worker();
  ASSERT_FALSE(is_over()) << call.get().error().message;

  front.say(wire::Hello{.context = 64, .pid = 1});
  const auto asked = front.wait_for_call();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->text, (std::vector<Token>{4, 5, 6}));
  front.say(wire::State{asked->id, 3});
  front.turn();
  const auto tokens = call.get();
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(*tokens, 3);
}

TEST(SteppedService, ACallThatALostWorkerHadFails) {
  std::future<Result<int>> call;
  SteppedFront front(3);
  front.say(wire::Hello{.context = 64, .pid = 1});
  call = std::async(std::launch::async, [&] { return front.service->kept(std::vector<Token>{4, 5, 6}); });
  ASSERT_TRUE(front.wait_for_call());
  front.lose_worker();
  const auto tokens = call.get();
  ASSERT_FALSE(tokens);
  EXPECT_NE(tokens.error().message.find("lost meanwhile"), std::string::npos) << tokens.error().message;
}

TEST(SteppedService, ACallIsAnsweredOnce) {
  std::future<Result<int>> call;
  SteppedFront front(3);
  front.say(wire::Hello{.context = 64, .pid = 1});
  call = std::async(std::launch::async, [&] { return front.service->kept(std::vector<Token>{4, 5, 6}); });
  const auto asked = front.wait_for_call();
  ASSERT_TRUE(asked);
  front.say(wire::Failed{asked->id, {Code::Failed, "no room", ""}});
  front.turn();
  const auto tokens = call.get();
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().message, "no room");
  EXPECT_EQ(front.service->facts().restarts, 0);
  front.say(wire::Failed{asked->id, {Code::Failed, "no room", ""}});
  front.turn();
  EXPECT_EQ(front.service->facts().restarts, 1) << "a worker that answers twice is replaced";
}

// The service pings an idle worker, so that it finds one that hangs.
TEST(SteppedService, AnIdleWorkerIsPinged) {
  SteppedFront front(3);
  front.say(wire::Hello{.context = 64, .pid = 1});
  front.turn();
  for (int i = 0; i < 3; i++) {
    front.pass(std::chrono::seconds(1));
    front.turn();
    EXPECT_FALSE(front.heard<wire::Ping>()) << "each two seconds";
    front.pass(std::chrono::seconds(1));
    front.turn();
    const auto ping = front.heard<wire::Ping>();
    ASSERT_TRUE(ping) << i;
    front.say(wire::Pong{ping->n, {}});
    front.turn();
  }
  EXPECT_EQ(front.service->facts().restarts, 0);
}

// The next worker continues with the tokens that were told, and with what the sampler remembers of them.
TEST(SteppedService, TheNextWorkerGetsTheTokensAndTheSamplersMemory) {
  SteppedFront front(3);
  std::vector<Token> told;
  GenerationRequest r;
  r.prompt = {1, 2}, r.max_tokens = 10;
  GenerationSink sink;
  sink.token = [&](const TokenEvent& t) { told.push_back(t.token); };
  sink.end = [](const GenerationEnd&) {};
  sink.failed = [](const Error&) {};
  front.say(wire::Hello{.context = 64, .pid = 1});
  front.turn();
  const uint64_t id = new_request_id();
  ASSERT_TRUE(front.service->submit(id, std::move(r), std::move(sink)));
  front.turn();
  const auto first = front.heard<wire::Submit>();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->request.written.empty());
  EXPECT_EQ(first->request.memory, 0);
  front.say(wire::Begun{id});
  for (int i = 0; i < 2; i++) {
    TokenEvent t{};
    t.token = 40 + i, t.index = i, t.text = "x", t.memory = 6.25 + i;
    front.say(wire::NextToken{id, t});
  }
  front.turn();
  EXPECT_EQ(told, (std::vector<Token>{40, 41}));
  front.lose_worker();
  front.say(wire::Hello{.context = 64, .pid = 2});
  front.turn(), front.turn();
  const auto second = front.heard<wire::Submit>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->request.written, told);
  EXPECT_EQ(second->request.memory, 7.25);
}

}  // namespace
}  // namespace gimbal::test
