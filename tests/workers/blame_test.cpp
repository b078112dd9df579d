// Requests that end every worker fail alone, and the others never notice (workers/blame.h). The worker here
// is this test's own program with a scripted engine.
#include <signal.h>

#include <thread>

#include "base/send_signal.h"
#include "workers/scripted_front.h"

namespace gimbal::test {
namespace {

TEST(Blame, ARequestThatEndsEveryWorkerIsGivenUpAndOthersGoOn) {
  Front front("crash", 0);
  front.ask(0, 5);
  const Answer a = front.wait(0);
  ASSERT_TRUE(a.failed);
  EXPECT_NE(a.failed->message.find("lost 3 times"), std::string::npos) << a.failed->message;
  Front liar("lie-count");
  liar.ask(0, 5);
  EXPECT_TRUE(liar.wait(0).failed);
}

// Each worker ends at the same token of one request, or when it gets it. The first such loss is everybody's;
// then it is alone, and no other request is repeated.
TEST(Blame, OneThatEndsEveryWorkerFailsAloneAndNobodyElseNotices) {
  struct Case {
    std::string mode;
    int at, attempts;
  };
  for (const auto& [mode, at, attempts] : {Case{"poison-step", 0, 3},
                                           {"poison-step", 25, 3},
                                           {"poison-submit", 0, 3},
                                           {"poison-submit", 0, 2}}) {
    Front front(mode, at, [attempts = attempts](WorkerSettings& s) { s.attempts = attempts; });
    for (size_t n = 8; n < 20; n++) front.ask(n, 60);
    for (size_t n = 8; n < 20; n++) {
      const Answer a = front.wait(n);
      if (n != size_t(kPoison)) {
        expect_whole(a, n, 60);
        continue;
      }
      ASSERT_TRUE(a.failed) << mode;
      const std::string lost =
          "lost " + std::to_string(attempts) + " times while it computed this answer alone";
      EXPECT_NE(a.failed->message.find(lost), std::string::npos) << a.failed->message;
      EXPECT_EQ(a.tokens.size(), size_t(at));
      EXPECT_TRUE(a.in_order);
    }
    // Where it is not begun, the second loss makes it a suspect.
    EXPECT_LE(front.replaced().size(), size_t(attempts) + (mode == "poison-step" ? 1 : 2)) << mode;
    front.ask(60, 60);
    expect_whole(front.wait(60), 60, 60);
  }
}

// A service that gets one such request after the other stays there, also if a worker ends before it can
// report what it begins.
TEST(Blame, ManyThatEndEveryWorkerDoNotEndTheService) {
  for (const char* mode : {"poison-step", "poison-submit"}) {
    Front front(mode, 0);
    for (int i = 0; i < 3; i++) {
      front.ask(size_t(kPoison), 5);
      const Answer a = front.wait(size_t(kPoison));
      ASSERT_TRUE(a.failed) << mode;
      EXPECT_NE(a.failed->message.find("lost 3 times"), std::string::npos) << a.failed->message;
      front.forget(size_t(kPoison));
    }
    front.ask(1, 30);
    expect_whole(front.wait(1), 1, 30);
  }
}

TEST(Blame, TheServiceEndsAfterThreeFailedStarts) {
  Front front("never-starts");
  front.ask(0, 5);
  const Answer a = front.wait(0);
  ASSERT_TRUE(a.failed);
  EXPECT_NE(a.failed->message.find("no worker process starts"), std::string::npos) << a.failed->message;
  EXPECT_EQ(front.replaced().size(), 3u);
}

TEST(Blame, CancelledWhileOthersAreTriedTheyEnd) {
  Front front("poison-step", 10);
  std::vector<uint64_t> ids;
  for (size_t n = 8; n < 20; n++) ids.push_back(front.ask(n, 100'000));
  front.wait(size_t(kPoison), 10);
  while (front.replaced().empty()) std::this_thread::yield();
  for (uint64_t id : ids) front.service->cancel(id);
  for (size_t n = 8; n < 20; n++) {
    const Answer a = front.wait(n);
    EXPECT_TRUE(a.in_order);
    EXPECT_TRUE(a.end || (a.failed && n == size_t(kPoison))) << n;
    if (a.end) { EXPECT_EQ(a.end->finish, Finish::Cancelled); }
  }
}

TEST(Blame, EmbeddingsThatEndEveryWorkerFailAlone) {
  Front front("poison-step", 0);
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; c++)
    clients.emplace_back([&, c] {
      std::vector<std::vector<Token>> texts;
      for (int i = 0; i < 40; i++) texts.push_back({c == 3 && i == 20 ? kPoison : c * 40 + i + 100, i});
      size_t next = 0;
      const auto ok = front.service->embed(texts, [&](size_t i, std::span<const float> v) -> Status {
        EXPECT_EQ(i, next++);
        EXPECT_EQ(v[0], float(texts[i][0]) / 3);
        return Done{};
      });
      EXPECT_EQ(bool(ok), c != 3);
      EXPECT_EQ(next, c == 3 ? 20u : 40u);
    });
  for (std::thread& c : clients) c.join();
}

}  // namespace
}  // namespace gimbal::test

int main(int argc, char** argv) { return gimbal::test::main_of_front(argc, argv); }
