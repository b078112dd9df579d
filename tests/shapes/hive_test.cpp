// What a worker tells a hive, and that a hive can do it no harm.
#include "apps/worker/hive.h"

#include <gtest/gtest.h>

#include <regex>

#include "support/fake_hive.h"

namespace gimbal::worker {
namespace {

using test::FakeHive;

// A worker that speaks to a hive, without the worker.
class Telling {
 public:
  explicit Telling(const std::string& url, double patience = 1000) {
    HiveOptions o{url, "w-1", "stories", "cpu", 0};
    o.interval = 0.02, o.patience = patience, o.first_pause = 0.01, o.longest_pause = 0.05;
    o.log = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      log_.push_back(text);
      changed_.notify_all();
    };
    auto made = Hive::create(std::move(o));
    if (!made) throw std::runtime_error(made.error().message);
    hive = std::move(*made);
    hive->ready("http://127.0.0.1:4711");
  }
  // As soon as it has so many lines.
  std::vector<std::string> log(size_t lines) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(2), [&] { return log_.size() >= lines; }));
    return log_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;

 public:
  std::unique_ptr<Hive> hive;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(Hive, IsToldThatTheWorkerIsReadyAndThenThatItLives) {
  FakeHive hive;
  Telling worker(hive.url() + "/");
  const auto calls = hive.wait_for(5, "/v1/heartbeat");
  EXPECT_EQ(calls[0].path, "/v1/workers/ready");
  EXPECT_EQ(
      calls[0].body.dump(),
      R"({"worker_id":"w-1","url":"http://127.0.0.1:4711","model_ref":"stories","backend":"cpu","device":0})");
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  for (size_t i = 1; i < calls.size(); i++) {
    EXPECT_EQ(calls[i].path, "/v1/heartbeat") << "it is registered once";
    EXPECT_EQ(calls[i].body.size(), 3u);
    EXPECT_EQ(calls[i].body["worker_id"], "w-1");
    EXPECT_TRUE(std::regex_match(calls[i].body["timestamp"].get<std::string>(), time)) << calls[i].body;
    EXPECT_EQ(calls[i].body["health_status"], "healthy");
  }
  const auto log = worker.log(1);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0], "the hive at " + hive.url() + " has accepted this worker, w-1");
}

TEST(Hive, MayLieBelowAPath) {
  FakeHive hive;
  Telling worker(hive.url() + "/pool/7//");
  EXPECT_EQ(hive.wait_for(1, "/v1/heartbeat")[0].path, "/pool/7/v1/workers/ready");
}

TEST(Hive, MayKnowHeartbeatsAlone) {
  FakeHive hive(FakeHive::KnowsHeartbeats);
  Telling worker(hive.url());
  const auto calls = hive.wait_for(3, "/v1/heartbeat");
  EXPECT_EQ(calls[0].path, "/v1/workers/ready");
  EXPECT_EQ(calls[1].path, "/v1/heartbeat");
  EXPECT_EQ(worker.log(1).size(), 1u);
}

TEST(Hive, IsWaitedForWhereItIsAway) {
  const uint16_t port = FakeHive().port();
  Telling worker("http://127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(contains(worker.log(1)[0], "contact with the hive")) << worker.log(1)[0];
  FakeHive hive(FakeHive::Answers, port);
  EXPECT_EQ(hive.wait_for(2, "/v1/heartbeat")[0].path, "/v1/workers/ready");
  const auto log = worker.log(2);
  ASSERT_EQ(log.size(), 2u) << "each is said once";
  EXPECT_TRUE(contains(log[1], "has accepted this worker, w-1"));
}

// The worker tries each of them again and again, reports it once, and connects as soon as it is in order;
// then it registers again, since the hive may have been restarted.
TEST(Hive, ThatIsOutOfOrderIsTriedAgainAndSaidOnce) {
  FakeHive other;
  for (const auto way : {FakeHive::Refuses, FakeHive::LeadsAway, FakeHive::TalksNonsense,
                         FakeHive::SaysNothing, FakeHive::EndlessHeaders, FakeHive::HangsUp}) {
    SCOPED_TRACE(way);
    FakeHive hive;
    hive.elsewhere = other.url() + "/v1/workers/ready";
    Telling worker(hive.url(), way == FakeHive::SaysNothing ? 0.05 : 1000);
    hive.wait_for(1, "/v1/heartbeat");
    worker.log(1);
    hive.way = way;
    const size_t ready = 1;
    hive.wait_for(ready + 4, "/v1/workers/ready");
    EXPECT_EQ(worker.log(2).size(), 2u);
    EXPECT_TRUE(contains(worker.log(2)[1], "contact with the hive"));
    hive.way = FakeHive::Answers;
    const auto log = worker.log(3);
    ASSERT_EQ(log.size(), 3u);
    EXPECT_TRUE(contains(log[2], "has accepted this worker"));
  }
  EXPECT_TRUE(other.calls().empty()) << "no hive sends its workers to another one";
}

// Its status is all that counts, and of the rest not more is read than a little.
TEST(Hive, ThatNeverStopsTalkingIsHeardAsFarAsItMatters) {
  FakeHive hive(FakeHive::NeverEnds);
  Telling worker(hive.url());
  hive.wait_for(3, "/v1/heartbeat");
  EXPECT_EQ(worker.log(1).size(), 1u);
}

TEST(Hive, IsToldInTheEndThatNoMoreIsTaken) {
  FakeHive hive;
  {
    Telling worker(hive.url());
    hive.wait_for(2, "/v1/heartbeat");
    worker.hive->draining();
    worker.hive = nullptr;
  }
  const auto calls = hive.calls();
  EXPECT_EQ(calls.back().body["health_status"], "degraded");
  for (size_t i = 1; i + 1 < calls.size(); i++) EXPECT_EQ(calls[i].body["health_status"], "healthy");
}

// Its patience would last for hours.
TEST(Hive, ThatHangsHoldsUpNoEnd) {
  for (const bool draining : {false, true}) {
    FakeHive hive(FakeHive::SaysNothing);
    Telling worker(hive.url(), 10000);
    hive.wait_for(1, "/v1/workers/ready");
    if (draining) worker.hive->draining();
    worker.hive = nullptr;
    EXPECT_EQ(hive.calls().size(), 1u);
  }
}

TEST(Hive, NeedsAnAddressOfHttp) {
  for (const char* url :
       {"", "hive:9200", "ftp://hive", "http://", "http://hive/?key=1", "http://a b", "/hive"}) {
    const auto made = Hive::create({url, "w-1", "m", "cpu", 0});
    ASSERT_FALSE(made) << url;
    EXPECT_EQ(made.error().code, Code::Usage);
    EXPECT_FALSE(made.error().remedy.empty());
  }
  EXPECT_TRUE(Hive::create({"HTTPS://Hive:443/x", "w-1", "m", "cpu", 0}));
}

TEST(Hive, IdsOfWorkersArePlainWords) {
  for (const char* id : {"w", "worker-1", "550e8400-e29b-41d4-a716-446655440000", "a.b_C-9", "7"})
    EXPECT_TRUE(is_worker_id(id)) << id;
  for (const char* id : {"", "-w", ".w", "_w", "a b", "a/b", "a\"b", "\xc3\xa4", "a\n", "a:b"})
    EXPECT_FALSE(is_worker_id(id)) << id;
  EXPECT_TRUE(is_worker_id(std::string(128, 'a')));
  EXPECT_FALSE(is_worker_id(std::string(129, 'a')));
}

}  // namespace
}  // namespace gimbal::worker
