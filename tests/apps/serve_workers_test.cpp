// The processes that compute for gimbal serve: killed at any moment, no answer notices.
#include <atomic>
#include <filesystem>
#include <fstream>

#include "support/fake_plugins.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

// The processes whose parent is this one, and which say that they are workers.
std::vector<pid_t> workers_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream stat(entry.path() / "stat"), command(entry.path() / "cmdline");
    std::string text((std::istreambuf_iterator<char>(stat)), {}),
        words((std::istreambuf_iterator<char>(command)), {});
    // "pid (name) state parent ..."
    const size_t close = text.rfind(')');
    if (close == text.npos || words.find(std::string("\0worker\0", 8)) == words.npos) continue;
    if (std::atoi(text.c_str() + close + 4) == parent) found.push_back(pid_t(std::stoi(name)));
  }
  return found;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A library is opened as a copy in memory (device/library.cpp): whether it is one of this file as it is now.
bool computes_with(pid_t pid, const std::string& plugin) {
  const std::string name = std::filesystem::path(plugin).filename();
  for (const auto& entry : std::filesystem::directory_iterator(format("/proc/{}/fd", pid)))
    if (contains(std::filesystem::read_symlink(entry.path()).string(), name))
      return bytes_of(entry.path()) == bytes_of(plugin);
  return false;
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
    for (const pid_t pid : workers_of(s.pid())) killed += kill(pid, SIGKILL) == 0;
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

// The built-in model is so small that a context for each fits anywhere; cache_size_test has the others.
TEST(ServeWorkers, TheCacheIsWhatTheRequestsCanUseAndSaid) {
  const std::string log = format("{}/cache-{}.log", testing::TempDir(), getpid());
  for (const auto& [more, tokens] :
       {std::pair(Args{"--parallel", "10"}, 5120), {Args{"--cache-tokens", "1024"}, 1024}}) {
    const Serving s(more, {}, log);
    const Json j = Json::parse(s.ask(get("/v1/explain/" + s.model)).body, nullptr, false);
    EXPECT_EQ(j["workers"][0]["cache_tokens"], tokens);
    EXPECT_SAYS(bytes_of(log), format("KV cache for {} tokens, {} contexts of 512", tokens, tokens / 512));
  }
  std::filesystem::remove(log);
}

// Workers that start together see the same memory free: what they take of it is less than there is.
TEST(ServeWorkers, TwoOnADeviceDoNotTakeItsMemoryTwice) {
  PluginFolder folder;
  constexpr uint64_t kFree = 64'000'000;
  folder.put("metal", format("hardware,memory={},free={}", 2 * kFree, kFree));
  const auto caches = [&](const std::string& workers) {
    const Serving s(
        {"--parallel", "256", "--numerics", "fast", "--workers", workers},
        {{"GIMBAL_BACKEND_PATH", folder.path()}, {"GIMBAL_FAKE_metal", std::getenv("GIMBAL_FAKE_metal")}});
    const Json j = Json::parse(s.ask(get("/v1/explain/" + s.model)).body, nullptr, false);
    uint64_t total = 0;
    std::vector<uint64_t> all;
    for (const Json& worker : j["workers"]) {
      EXPECT_EQ(worker["devices"].size(), 1u) << worker["devices"];
      for (const Json& device : worker["devices"]) {
        EXPECT_EQ(device["free"], kFree);
        all.push_back(device["kv_cache"]);
        total += device["total"].get<uint64_t>();
      }
    }
    EXPECT_LE(total, kFree - kFree / 16);
    return all;
  };
  const auto one = caches("metal:0"), two = caches("metal:0,metal:0");
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_GT(one[0], two[0]);
  EXPECT_EQ(two[0], two[1]);
  EXPECT_GT(two[0], 0u);
}

TEST(ServeWorkers, TwoThatFitOneByOneAndNotTogetherAreRefused) {
  PluginFolder folder;
  const auto environment = [&](uint64_t free) {
    folder.put("metal", format("hardware,memory={},free={}", 2 * free, free));
    return std::map<std::string, std::string>{{"GIMBAL_BACKEND_PATH", folder.path()},
                                              {"GIMBAL_FAKE_metal", std::getenv("GIMBAL_FAKE_metal")}};
  };
  const auto with = [](const char* workers) {
    return Args{"--parallel", "1",        "--cache-tokens", "512",  "--numerics",
                "fast",       "--strict", "--workers",      workers};
  };
  uint64_t total = 0;
  {
    const Serving s(with("metal:0"), environment(1'000'000'000));
    const Json j = Json::parse(s.ask(get("/v1/explain/" + s.model)).body, nullptr, false);
    total = j["workers"][0]["devices"][0]["total"];
  }
  const Serving one(with("metal:0"), environment(total + total / 2));
  EXPECT_EQ(workers_of(one.pid()).size(), 1u);
  Args both = {"serve", "default", "--port", "0"};
  for (const std::string& word : with("metal:0,metal:0")) both.push_back(word);
  const auto refused = gimbal(both, {{}, environment(total + total / 2)});
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_SAYS(refused.err, "not enough memory on metal:0 for 2 workers together");
  EXPECT_SAYS(refused.err, "start one worker there");
  // One that replaces another one does not ask again.
  const Serving two(with("metal:0,metal:0"), environment(2 * total));
  const auto before = workers_of(two.pid());
  ASSERT_EQ(before.size(), 2u);
  kill(before[0], SIGKILL);
  for (int i = 0; i < 4; i++) two.ask("/v1/completions", {{"prompt", "A"}, {"max_tokens", 2}});
}

// Their pages are those of one file, which all processes share.
TEST(ServeWorkers, TwoOnADeviceMapTheSamePackedWeights) {
  const std::string folder = format("{}/mapped-{}", testing::TempDir(), getpid()), model = folder + "/m.gguf";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(golden_dir() + "/arch/llama-gqa.gguf", model);
  ASSERT_EQ(gimbal({"pack", model, "--quiet"}).code, 0);
  {
    const Serving s({model, "--workers", "cpu,cpu"});
    const auto workers = workers_of(s.pid());
    EXPECT_EQ(workers.size(), 2u);
    for (const pid_t pid : workers) {
      const std::string maps = bytes_of(format("/proc/{}/maps", pid));
      const size_t at = maps.find(format("/mapped-{}/m.gguf.packed", getpid()));
      ASSERT_NE(at, maps.npos) << maps;
      const std::string line = maps.substr(maps.rfind('\n', at) + 1, at - maps.rfind('\n', at));
      EXPECT_SAYS(line, " r--s ");
    }
    EXPECT_EQ(s.ask("/v1/completions", {{"prompt", {1, 5, 9}}, {"max_tokens", 4}})["usage"]["prompt_tokens"],
              3);
  }
  std::filesystem::remove_all(folder);
}

TEST(ServeWorkers, AModelThatCannotBeLoadedSaysWhyAndEndsTheServer) {
  const auto r = gimbal({"serve", "default", "--port", "0", "--strict", "--backend", "cuda"});
  EXPECT_NE(r.code, 0);
  EXPECT_SAYS(r.err, "cuda");
}

}  // namespace
}  // namespace gimbal::test
