// What the chat templates of all requests may take together, and whose turn it is.
#include "server/api/renderings.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <semaphore>

#include "server/api_server.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

using api::Renderings;
using api::Turns;

const Error kStopped{Code::Failed, "stopped", "", reason::kTemplateLimit};

TEST(Turns, GoAroundTheNames) {
  Turns turns(1, 10, 10);
  ASSERT_TRUE(turns.take("first"));
  std::mutex mutex;
  std::string order;
  std::vector<std::thread> all;
  for (const char* name : {"a", "a", "a", "b", "b", "c"}) {
    const size_t before = turns.waiting();
    all.emplace_back([&, name] {
      ASSERT_TRUE(turns.take(name));
      {
        const std::lock_guard lock(mutex);
        order += name;
      }
      turns.give_back();
    });
    while (turns.waiting() == before) std::this_thread::yield();
  }
  turns.give_back();
  for (std::thread& t : all) t.join();
  EXPECT_EQ(order, "abcaba");
  EXPECT_TRUE(turns.take("next")) << "it is free again";
}

TEST(Turns, TooManyWait) {
  Turns turns(1, 3, 2);
  ASSERT_TRUE(turns.take("a"));
  std::vector<std::thread> all;
  for (const char* name : {"a", "a", "b"}) {
    const size_t before = turns.waiting();
    all.emplace_back([&, name] {
      ASSERT_TRUE(turns.take(name));
      turns.give_back();
    });
    while (turns.waiting() == before) std::this_thread::yield();
    if (turns.waiting() == 2) { EXPECT_FALSE(turns.take("a")) << "two of a name"; }
  }
  EXPECT_FALSE(turns.take("c")) << "three in all";
  turns.give_back();
  for (std::thread& t : all) t.join();
}

TEST(Renderings, WhatNeedsLittleIsMadeOnceWithLittle) {
  Renderings r;
  std::vector<uint64_t> steps;
  const auto made = [&](Status end) {
    return [&steps, end](const RenderLimits& l) -> Status {
      steps.push_back(l.steps);
      return end;
    };
  };
  EXPECT_TRUE(r.run("client", "model", 10, made(Done{})));
  EXPECT_EQ(steps, std::vector<uint64_t>{Renderings::kQuick.steps});
  EXPECT_FALSE(r.run("client", "model", 10, made(Error{Code::Failed, "its own mistake", ""})));
  EXPECT_EQ(steps.size(), 2u) << "with more it would fail, too";
  // A long conversation may need more, and says nothing about the next one.
  steps.clear();
  EXPECT_FALSE(r.run("client", "model", 1 << 20, made(kStopped)));
  EXPECT_TRUE(r.run("client", "model", 10, made(Done{})));
  EXPECT_EQ(steps, (std::vector<uint64_t>{Renderings::kQuick.steps, Renderings::kWhole.steps,
                                          Renderings::kQuick.steps}));
  // A template that needs much for little always will.
  steps.clear();
  EXPECT_FALSE(r.run("client", "model", 10, made(kStopped)));
  EXPECT_FALSE(r.run("client", "model", 10, made(kStopped)));
  EXPECT_EQ(steps, (std::vector<uint64_t>{Renderings::kQuick.steps, Renderings::kWhole.steps,
                                          Renderings::kWhole.steps}));
}

TEST(Renderings, OneThatNeedsMuchAtATimeAndOthersAreMadeMeanwhile) {
  Renderings r;
  std::counting_semaphore<16> refused(0), may_end(0);
  std::atomic<int> at_once{0}, most{0};
  const auto heavy = [&](const RenderLimits& l) -> Status {
    if (l.steps == Renderings::kQuick.steps) return kStopped;
    most = std::max(most.load(), ++at_once);
    may_end.acquire();
    at_once--;
    return Done{};
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; i++)
    clients.emplace_back([&] {
      const Status ok = r.run("one", "bomb", 1, heavy);
      if (ok) return;
      EXPECT_EQ(ok.error().reason, std::string_view(reason::kTemplatesBusy));
      refused.release();
    });
  refused.acquire();  // one is made, and four of this client wait
  for (const char* model : {"other", "third"})
    EXPECT_TRUE(r.run("one", model, 1, [](const RenderLimits&) -> Status { return Done{}; }));
  std::thread another([&] { EXPECT_TRUE(r.run("another", "bomb", 1, heavy)) << "it waits for its turn"; });
  may_end.release(6);
  for (std::thread& c : clients) c.join();
  another.join();
  EXPECT_EQ(most, 1);
}

// Under a sanitizer twenty million steps, or 256 MB of values, take longer than a client waits; under
// ThreadSanitizer 16 MB of text do, too.
#if defined(__SANITIZE_THREAD__)
constexpr std::string_view kTooSlow[] = {"steps", "268435456 bytes", "16777216 bytes"};
#elif defined(__SANITIZE_ADDRESS__)
constexpr std::string_view kTooSlow[] = {"steps", "268435456 bytes"};
#else
constexpr std::array<std::string_view, 0> kTooSlow = {};
#endif

class TemplateLimits : public ApiTest {};

// The client and the log learn which one.
TEST_F(TemplateLimits, AreNamed) {
  std::mutex mutex;
  std::string why;
  services.log.tell = [&](const api::RequestRecord& r) {
    const std::lock_guard lock(mutex);
    if (!r.why.empty()) why = api::log_line(r, true);
  };
  for (const auto& [source, said] :
       {std::pair(
            "{% for i in range(9999) %}{% for j in range(9999) %}{% set x = j %}{% endfor %}{% endfor %}",
            "stopped after 20000000 steps"),
        {"{% set ns = namespace(a='aaaaaaaa') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% "
         "endfor %}",
         "its values take more than 268435456 bytes"},
        {"{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}", "it writes more than 16777216 bytes"},
        {"{{ 'a' * 99999999 }}", "a value repeated too often"}}) {
    if (std::any_of(std::begin(kTooSlow), std::end(kTooSlow),
                    [&](std::string_view end) { return std::string_view(said).ends_with(end); })) {
      std::printf("left out under this sanitizer: %s\n", said);
      continue;
    }
    models.model->template_is(source);
    for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
      if (fewer_cases() && path == std::string_view("/v1/messages")) continue;
      const HttpAnswer a = ask(
          path,
          {{"model", "stories"}, {"max_tokens", 2}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}});
      EXPECT_EQ(a.status, 500) << a.body;
      EXPECT_NE(a.body.find(said), std::string::npos) << a.body;
      const std::lock_guard lock(mutex);
      EXPECT_NE(why.find(said), std::string::npos) << why;
      EXPECT_NE(why.find("template_limit"), std::string::npos) << why;
    }
  }
  models.model->template_is("{{ messages[0].content }}");
  EXPECT_EQ(ask("/v1/chat/completions",
                {{"model", "stories"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}})
                .status,
            200);
}

}  // namespace
}  // namespace gimbal::test
