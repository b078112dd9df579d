// Downloads that clients request: the lines that each reader gets, and when a download is shared, cancelled
// or refused. tests/fetch/pull_server.py has whole ones.
// Threads: each download has one.
#include "server/api/pulls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace gimbal::test {
namespace {

using api::PullJob;
using api::Pulls;

class Reader final : public http::Exchange {
 public:
  void answer(http::Response) override {}
  void stream(std::shared_ptr<http::Source>) override {}
  void open(http::Response, std::shared_ptr<http::Messages>) override {}
  void wake() override { wakes++; }
  std::atomic<int> wakes{0};
};

PullEvent progress(const char* file, uint64_t done, uint64_t total) {
  return {PullEvent::Progress, file, done, total};
}

class PullLines : public testing::Test {
 protected:
  std::string read(PullJob::Seen& seen) {
    std::string out;
    over_ = job_.read(seen, out);
    return out;
  }
  std::string read() { return read(seen_); }

  std::atomic<bool> draining_{false};
  PullJob job_{"m", draining_};
  PullJob::Seen seen_;
  bool over_ = false;
};

TEST_F(PullLines, ProgressReplacesItsLastLine) {
  EXPECT_EQ(read(), "");
  EXPECT_TRUE(job_.on(progress("", 0, 0)));
  EXPECT_EQ(read(), "") << "before the first request";
  EXPECT_TRUE(job_.on(progress("a.gguf", 3, 10)));
  EXPECT_EQ(read(), R"({"status":"pulling a.gguf","total":10,"completed":3})"
                    "\n");
  EXPECT_EQ(read(), "") << "nothing new";
  job_.on(progress("a.gguf", 4, 10));
  job_.on(progress("a.gguf", 5, 10));
  EXPECT_EQ(read(), R"({"status":"pulling a.gguf","total":10,"completed":5})"
                    "\n");
  job_.on(progress("b.gguf", 1, 2));
  job_.on({PullEvent::Checking, "b.gguf", 1, 2});
  job_.on({PullEvent::Checking, "b.gguf", 2, 2});
  const std::string rest = R"({"status":"pulling b.gguf","total":2,"completed":1})"
                           "\n"
                           R"({"status":"verifying sha256 digest"})"
                           "\n";
  EXPECT_EQ(read(), rest);
  PullJob::Seen late;
  EXPECT_EQ(read(late), R"({"status":"pulling a.gguf","total":10,"completed":5})"
                        "\n" +
                            rest);
}

TEST_F(PullLines, EventsAreSentencesAndNeverReplaced) {
  for (int i = 0; i < 2; i++) EXPECT_TRUE(job_.on({PullEvent::Retried, "a.gguf", 0, 0, "it was cut"}));
  const std::string line = R"({"status":"a.gguf is requested again: it was cut"})"
                           "\n";
  EXPECT_EQ(read(), line + line);
  job_.on(progress("a.gguf", 1, 2));
  job_.on({PullEvent::Unchecked, "a.gguf"});
  job_.on(progress("a.gguf", 2, 2));
  const std::string lines = read();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
}

// Ollama's clients find a layer's line by its digest.
TEST_F(PullLines, FilesWithDigests) {
  job_.files({{"dir/a.gguf", "sha256:0123456789abcdef"}, {"b.gguf", "sha256:fedcba9876543210"}});
  job_.on(progress("a.gguf", 1, 2));
  EXPECT_EQ(read(), R"({"status":"pulling 0123456789ab","digest":"sha256:0123456789abcdef",)"
                    R"("total":2,"completed":1})"
                    "\n");
  job_.on(progress("b.gguf", 1, 2));
  EXPECT_EQ(read(), R"({"status":"pulling fedcba987654","digest":"sha256:fedcba9876543210",)"
                    R"("total":2,"completed":1})"
                    "\n");
  job_.on(progress("gguf", 1, 2));
  EXPECT_EQ(read(), R"({"status":"pulling gguf","total":2,"completed":1})"
                    "\n")
      << "the end of a name is not the name";
}

TEST_F(PullLines, TheEnd) {
  EXPECT_FALSE(job_.over());
  job_.on(progress("a", 1, 2));
  job_.end(Done{});
  EXPECT_TRUE(job_.over());
  EXPECT_TRUE(job_.result());
  job_.on(progress("a", 2, 2));
  EXPECT_EQ(read(), R"({"status":"pulling a","total":2,"completed":1})"
                    "\n"
                    R"({"status":"success"})"
                    "\n");
  EXPECT_TRUE(over_);

  PullJob failed("m", draining_);
  failed.end(Error{Code::Failed, "no disk", "buy one"});
  std::string out;
  PullJob::Seen seen;
  EXPECT_TRUE(failed.read(seen, out));
  EXPECT_EQ(out, R"({"error":"no disk"})"
                 "\n");
  EXPECT_EQ(failed.result().error().message, "no disk");
}

TEST_F(PullLines, AServerThatFailsAgainAndAgainFillsNoMemory) {
  for (int i = 0; i < 1500; i++) job_.tell({{"status", "again"}});
  const std::string lines = read();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1000);
  job_.end(Done{});
  EXPECT_EQ(read(), R"({"status":"success"})"
                    "\n")
      << "the end is reported even so";
}

TEST_F(PullLines, EachLineWakesTheReadersThatAreLeft) {
  const auto one = std::make_shared<Reader>(), two = std::make_shared<Reader>();
  EXPECT_TRUE(job_.read_by(one));
  EXPECT_TRUE(job_.read_by(two));
  job_.on(progress("a", 1, 2));
  EXPECT_EQ(one->wakes, 1);
  EXPECT_EQ(two->wakes, 1);
  job_.leave(one);
  EXPECT_TRUE(job_.on(progress("a", 2, 2))) << "another one reads it";
  job_.end(Done{});
  EXPECT_EQ(one->wakes, 1);
  EXPECT_EQ(two->wakes, 3);
}

TEST_F(PullLines, CancelledWhenTheLastReaderLeavesOrTheServerEnds) {
  const auto reader = std::make_shared<Reader>();
  EXPECT_TRUE(job_.read_by(reader));
  draining_ = true;
  EXPECT_FALSE(job_.on(progress("a", 1, 2)));
  draining_ = false;
  EXPECT_TRUE(job_.on(progress("a", 1, 2)));
  job_.leave(reader);
  EXPECT_FALSE(job_.on(progress("a", 2, 2)));
  EXPECT_FALSE(job_.read_by(reader)) << "a cancelled job stays cancelled";
}

// Downloads that run until the test lets them end, or they are cancelled.
class RunningPulls : public testing::Test {
 protected:
  std::shared_ptr<PullJob> start(const std::string& name, const std::shared_ptr<Reader>& reader) {
    return pulls_.start(name, reader, [this](PullJob& job) -> Status {
      began_++;
      while (job.on(progress("a", 1, 2))) {
        if (may_end_.try_acquire_for(std::chrono::milliseconds(1))) return Done{};
      }
      hold_.acquire();  // a cancelled one takes its time
      hold_.release();
      return Error{Code::Failed, "cancelled", ""};
    });
  }
  static std::shared_ptr<Reader> reader() { return std::make_shared<Reader>(); }
  static void wait_for_end(PullJob& job) {
    while (!job.over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::atomic<bool> draining_{false};
  std::atomic<int> began_{0};
  std::counting_semaphore<> may_end_{0};
  std::binary_semaphore hold_{1};
  Pulls pulls_{draining_};
};

TEST_F(RunningPulls, OneDownloadForAllWhoAskForAModel) {
  const auto first = reader(), second = reader();
  const auto job = start("m", first);
  ASSERT_TRUE(job);
  EXPECT_EQ(start("m", second), job);
  const auto other = start("n", reader());
  EXPECT_NE(other, job);
  job->leave(first);
  may_end_.release(2);
  wait_for_end(*job), wait_for_end(*other);
  pulls_.end();  // a thread wakes its readers after the job is over
  EXPECT_TRUE(job->result()) << "the second one reads it";
  EXPECT_GT(second->wakes, 0);
  const auto again = start("m", first);
  EXPECT_NE(again, job) << "which is over";
  may_end_.release();
  wait_for_end(*again);
  EXPECT_EQ(began_, 3);
}

TEST_F(RunningPulls, FourAtOnce) {
  std::vector<std::shared_ptr<PullJob>> jobs;
  for (const char* name : {"a", "b", "c", "d"}) jobs.push_back(start(name, reader()));
  for (const auto& job : jobs) EXPECT_TRUE(job);
  EXPECT_FALSE(start("e", reader()));
  EXPECT_TRUE(start("d", reader())) << "it runs already";
  may_end_.release();
  while (std::none_of(jobs.begin(), jobs.end(), [](auto& job) { return job->over(); }))
    std::this_thread::yield();
  EXPECT_TRUE(start("e", reader())) << "one has ended";
}

// The client of the first one left; the next one did not ask for a cancelled download.
TEST_F(RunningPulls, ACancelledDownloadIsNotShared) {
  hold_.acquire();
  const auto first = reader();
  const auto cancelled = start("m", first);
  cancelled->leave(first);
  const auto job = start("m", reader());
  hold_.release();
  ASSERT_TRUE(job);
  ASSERT_NE(job, cancelled);
  wait_for_end(*cancelled);  // until then it may take the permit of the next one
  EXPECT_FALSE(cancelled->result());
  may_end_.release();
  wait_for_end(*job);
  EXPECT_TRUE(job->result()) << job->result().error().message;
}

TEST_F(RunningPulls, TheEndCancelsAllAndWaits) {
  const auto one = start("a", reader()), two = start("b", reader());
  pulls_.end();
  EXPECT_TRUE(one->over());
  EXPECT_TRUE(two->over());
  EXPECT_FALSE(one->result());
}

}  // namespace
}  // namespace gimbal::test
