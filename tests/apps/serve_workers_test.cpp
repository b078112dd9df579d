// The processes that compute for gimbal serve: killed at any moment, no answer notices.
#include <atomic>
#include <filesystem>
#include <fstream>

#include "support/fake_plugins.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

// A library is opened as a copy in memory (device/library.cpp): whether it is one of this file as it is now.
bool computes_with(pid_t pid, const std::string& plugin) {
  const std::string name = std::filesystem::path(plugin).filename();
  for (const auto& entry : std::filesystem::directory_iterator(format("/proc/{}/fd", pid)))
    if (contains(std::filesystem::read_symlink(entry.path()).string(), name))
      return contents_of(entry.path()) == contents_of(plugin);
  return false;
}

// What enter_sandbox() takes first, on every kernel.
bool has_no_new_privileges(pid_t pid) {
  return contains(contents_of(format("/proc/{}/status", pid)), "NoNewPrivs:\t1");
}

bool gone(pid_t pid) {
  for (int i = 0; i < 500; i++) {
    if (kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(ServeWorkers, KilledWhileTheyComputeTheyLoseNothing) {
  const Serving s;
  const Json asked = {{"prompt", "Once upon a time"},
                      {"seed", 5},
                      {"max_tokens", 200},
                      {"logprobs", 3},
                      {"temperature", 0.9}};
  const Json alone = s.ask("/v1/completions", asked)["choices"][0];
  std::atomic<int> running{8};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; i++)
    clients.emplace_back([&] {
      EXPECT_EQ(s.ask("/v1/completions", asked)["choices"][0], alone);
      running--;
    });
  int killed = 0;
  // Not so fast that one worker after the other ends before it is ready, or a request meets three deaths
  // without a token between: it has answered something since the last one.
  while (running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (killed == 4) continue;
    s.ask("/v1/completions", {{"prompt", "A"}, {"max_tokens", 1}});
    for (const pid_t pid : workers_of(s.pid())) killed += send_signal(pid, SIGKILL);
  }
  for (std::thread& c : clients) c.join();
  EXPECT_GE(killed, 1);
  // The numbers are those that workers told last: at most two seconds old.
  const std::string restarts = format("gimbal_worker_restarts_total {}\n", killed);
  std::string metrics;
  for (int tries = 0; tries < 100 && !contains(metrics, restarts); tries++) {
    if (tries) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    metrics = s.ask(get("/metrics")).body;
  }
  EXPECT_SAYS(metrics, restarts);
  EXPECT_SAYS(metrics, "gimbal_requests_running 0\n");
  EXPECT_EQ(s.ask("/v1/completions", asked)["choices"][0], alone);
}

TEST(ServeWorkers, TheyEndWithTheServer) {
  for (const int how : {SIGTERM, SIGKILL}) {
    Serving s;
    s.ask("/v1/completions", {{"prompt", "A"}, {"max_tokens", 2}});
    const auto workers = workers_of(s.pid());
    ASSERT_EQ(workers.size(), 1u);
    s.end(how);
    EXPECT_TRUE(gone(workers[0])) << how;
  }
}

TEST(ServeWorkers, SeveralOrNoneAnswerTheSame) {
  const Json asked = {{"prompt", "Once upon a time"}, {"seed", 5}, {"max_tokens", 60}, {"logprobs", 3}};
  Json expected;
  for (const auto& [list, count] : {std::pair("none", 0u), {"cpu", 1u}, {"cpu,cpu", 2u}}) {
    const Serving s({"--workers", list});
    EXPECT_EQ(workers_of(s.pid()).size(), count);
    const Json first = s.ask("/v1/completions", asked)["choices"][0];
    if (expected.is_null()) expected = first;
    std::vector<std::thread> clients;
    for (int i = 0; i < 6; i++)
      clients.emplace_back([&] { EXPECT_EQ(s.ask("/v1/completions", asked)["choices"][0], expected); });
    for (std::thread& c : clients) c.join();
  }
  EXPECT_SAYS(gimbal({"serve", "--workers", "cpu,nonsense"}).err, "nonsense");
  EXPECT_SAYS(gimbal({"serve", "--workers", "cpu", "--backend", "cpu"}).err, "give only one of them");
  EXPECT_SAYS(gimbal({"worker"}).err, "started by `gimbal serve`");
}

TEST(ServeWorkers, ReloadedUnderLoadNoAnswerNotices) {
  const Serving s({"--workers", "cpu,cpu", "--api-key", "k"});
  const auto asked = [&](const std::string& path, const std::string& body, const char* key = "k") {
    return s.ask(post(path, body, std::string("x-api-key: ") + key + "\r\n"));
  };
  const std::string body = Json{
      {"model", s.model},  {"prompt", "Once upon a time"}, {"seed", 5}, {"max_tokens", 200}, {"logprobs", 3},
      {"temperature", 0.9}}.dump();
  const auto answer = [&] {
    const HttpAnswer a = asked("/v1/completions", body);
    EXPECT_EQ(a.status, 200) << a.body;
    return Json::parse(a.body, nullptr, false)["choices"][0];
  };
  const Json alone = answer();
  EXPECT_EQ(asked("/v1/backends/reload", "", "other").status, 401);
  EXPECT_EQ(asked("/v1/backends/reload", "{\"x\": 1}").status, 400);
  auto before = workers_of(s.pid());
  ASSERT_EQ(before.size(), 2u);
  std::atomic<int> running{8};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; i++)
    clients.emplace_back([&] {
      for (int n = 0; n < 3; n++) EXPECT_EQ(answer(), alone);
      running--;
    });
  // Without a pause between: each worker has the time to go on with what it was handed on.
  for (int n = 0; n < 8 && running > 0; n++) {
    const HttpAnswer a = asked("/v1/backends/reload", "");
    EXPECT_EQ(a.status, 200) << a.body;
    const Json now = Json::parse(a.body, nullptr, false);
    EXPECT_EQ(now["backends"][0]["available"].is_boolean(), true) << a.body;
    const auto after = workers_of(s.pid());
    EXPECT_EQ(after.size(), 2u);
    for (const pid_t pid : after) EXPECT_EQ(std::count(before.begin(), before.end(), pid), 0);
    before = after;
  }
  for (std::thread& c : clients) c.join();
  const HttpAnswer metrics = s.ask(get("/metrics", "x-api-key: k\r\n"));
  EXPECT_SAYS(metrics.body, "gimbal_worker_restarts_total 0\n");
}

TEST(ServeWorkers, ReloadedTheyUseThePluginThatIsThereNow) {
  PluginFolder folder;
  folder.put("metal", "hardware,memory=8000000000,free=6000000000");
  const Serving s(
      {"--backend", "metal", "--strict", "--numerics", "fast"},
      {{"GIMBAL_BACKEND_PATH", folder.path()}, {"GIMBAL_FAKE_metal", std::getenv("GIMBAL_FAKE_metal")}});
  const Json asked = {{"prompt", "Once upon a time"}, {"max_tokens", 8}, {"temperature", 0}};
  const Json first = s.ask("/v1/completions", asked)["choices"][0];
  EXPECT_TRUE(computes_with(workers_of(s.pid()).at(0), folder.file("metal")));
  // What is of no use is found before anything is exchanged.
  const auto before = workers_of(s.pid());
  std::ofstream(folder.file("metal") + ".new") << "no library";
  std::filesystem::rename(folder.file("metal") + ".new", folder.file("metal"));
  const HttpAnswer refused = s.ask(post("/v1/backends/reload", ""));
  EXPECT_EQ(refused.status, 409);
  EXPECT_SAYS(refused.body, "metal:0");
  EXPECT_EQ(workers_of(s.pid()), before);
  EXPECT_EQ(s.ask("/v1/completions", asked)["choices"][0], first);

  folder.put("metal", "hardware,memory=8000000000,free=6000000000", "v2");
  const HttpAnswer done = s.ask(post("/v1/backends/reload", "{}"));
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_SAYS(done.body, "fake, version 2");
  EXPECT_TRUE(computes_with(workers_of(s.pid()).at(0), folder.file("metal")));
  EXPECT_EQ(s.ask("/v1/completions", asked)["choices"][0], first);

  const Serving itself({"--workers", "none"});
  EXPECT_EQ(itself.ask(post("/v1/backends/reload", "")).status, 409);
}

// The model computes on the CPU alone, and the model that drafts for it where it is fastest.
TEST(ServeWorkers, TheDriverOfADrafterKeepsItsWorkerOutOfTheSandbox) {
  PluginFolder folder;
  folder.put("metal", "hardware,memory=8000000000,free=6000000000");
  const std::map<std::string, std::string> environment = {
      {"GIMBAL_BACKEND_PATH", folder.path()}, {"GIMBAL_FAKE_metal", std::getenv("GIMBAL_FAKE_metal")}};
  const std::string log = format("{}/sandbox-{}.log", testing::TempDir(), getpid());
  for (const std::string draft : {"ngram", "default"}) {
    const Serving s({"--gpu-layers", "0", "--numerics", "fast", "--draft", draft}, environment, log);
    const auto workers = workers_of(s.pid());
    ASSERT_EQ(workers.size(), 1u);
    const std::string said = contents_of(log);
    const bool enters = !contains(said, "no sandbox: the driver of metal:0 needs files");
    EXPECT_EQ(enters, draft == "ngram") << said;
    // A sanitizer cannot work in a sandbox, which the worker reports.
    EXPECT_EQ(has_no_new_privileges(workers[0]), enters && !contains(said, "built with a sanitizer"))
        << draft;
  }
  std::filesystem::remove(log);
}

TEST(ServeWorkers, AModelThatCannotBeLoadedSaysWhyAndEndsTheServer) {
  const auto r = gimbal({"serve", "default", "--port", "0", "--strict", "--backend", "cuda"});
  EXPECT_NE(r.code, 0);
  EXPECT_SAYS(r.err, "cuda");
}

}  // namespace
}  // namespace gimbal::test
