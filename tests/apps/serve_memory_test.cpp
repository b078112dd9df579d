// How much memory the models of gimbal serve take, and that all of them together have it.
#include "base/host_memory.h"
#include "support/fake_plugins.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

// The built-in model is so small that a context for each fits anywhere; cache_size_test has the others.
TEST(ServeMemory, TheCacheIsWhatTheRequestsCanUseAndSaid) {
  const std::string log = format("{}/cache-{}.log", testing::TempDir(), getpid());
  for (const auto& [more, tokens] :
       {std::pair(Args{"--parallel", "10"}, 5120), {Args{"--cache-tokens", "1024"}, 1024}}) {
    const Serving s(more, {}, log);
    const Json j = Json::parse(s.ask(get("/v1/explain/" + s.model)).body, nullptr, false);
    EXPECT_EQ(j["workers"][0]["cache_tokens"], tokens);
    EXPECT_EQ(j["workers"][0]["max_context_length"],
              json_of(gimbal({"plan", "--json"}))["max_context_length"]);
    EXPECT_SAYS(contents_of(log), format("KV cache for {} tokens, {} contexts of 512", tokens, tokens / 512));
  }
  std::filesystem::remove(log);
}

// Workers that start together see the same memory free: what they take of it is less than there is.
TEST(ServeMemory, TwoOnADeviceDoNotTakeItsMemoryTwice) {
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

TEST(ServeMemory, TwoThatFitOneByOneAndNotTogetherAreRefused) {
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
  ASSERT_TRUE(send_signal(before[0], SIGKILL));
  for (int i = 0; i < 4; i++) two.ask("/v1/completions", {{"prompt", "A"}, {"max_tokens", 2}});
}

// Their pages are those of one file, which all processes share.
TEST(ServeMemory, TwoOnADeviceMapTheSamePackedWeights) {
  const std::string folder = format("{}/mapped-{}", testing::TempDir(), getpid()), model = folder + "/m.gguf";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(golden_dir() + "/arch/llama-gqa.gguf", model);
  ASSERT_EQ(gimbal({"pack", model, "--quiet"}).code, 0);
  {
    const Serving s({model, "--workers", "cpu,cpu"});
    const auto workers = workers_of(s.pid());
    EXPECT_EQ(workers.size(), 2u);
    for (const pid_t pid : workers) {
      const std::string maps = contents_of(format("/proc/{}/maps", pid));
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

// Two models whose KV cache is mapped and hardly used, so that the system calls nearly all of it free.
class TwoModels {
 public:
  // `share`: of the free memory, for the cache of each.
  explicit TwoModels(double share, const Args& more = {})
      : log_(format("{}/two-{}.log", testing::TempDir(), getpid())),
        server_(options(share, more), {}, log_) {}
  ~TwoModels() { std::filesystem::remove(log_); }

  const Serving& server() const { return server_; }
  std::string model(int i) const { return server_.start["models"][i]; }
  HttpAnswer ask(int i) const {
    const Json asked = {{"model", model(i)}, {"prompt", "Once"}, {"max_tokens", 4}};
    return server_.ask(post("/v1/completions", asked.dump()));
  }
  // Answers that have just ended, or whose client left, may hold the other model yet.
  int ask_until_there_is_room(int i) const {
    int status = ask(i).status;
    for (int tries = 0; tries < 100 && status == 503; tries++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      status = ask(i).status;
    }
    return status;
  }
  int loaded() const {
    return int(Json::parse(server_.ask(get("/api/ps")).body, nullptr, false)["models"].size());
  }
  std::string log() const { return contents_of(log_); }

 private:
  // Contexts so long that their answers could use all of it.
  static Args options(double share, const Args& more) {
    const Serving s({"--cache-tokens", "5120"});
    const Json j = Json::parse(s.ask(get("/v1/explain/" + s.model)).body, nullptr, false);
    const double of_token = j["workers"][0]["devices"][0]["kv_cache"].get<double>() / 5120;
    const auto tokens = int64_t(share * double(host_memory().available) / of_token);
    Args all = {"default",        golden_dir() + "/stories/stories260K-q8_0.gguf",
                "--ctx",          std::to_string(tokens / 16),
                "--parallel",     "32",
                "--cache-tokens", std::to_string(tokens)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  const std::string log_;
  const Serving server_;
};

TEST(ServeMemory, WhatAModelPlannedAndDidNotUseIsNotFreeForTheNext) {
  const TwoModels s(0.7);
  EXPECT_EQ(s.ask(0).status, 200);
  {
    // An unread answer keeps its model.
    HttpClient unread(s.server().port);
    const Json asked = {{"model", s.model(0)},
                        {"messages", {{{"role", "user"}, {"content", "Once"}}}},
                        {"n", 8},
                        {"max_tokens", 2000},
                        {"logprobs", true},
                        {"top_logprobs", 20},
                        {"stream", true},
                        {"ignore_eos", true}};
    unread.send(post("/v1/chat/completions", asked.dump()));
    ASSERT_TRUE(unread.reads("data: "));
    const HttpAnswer refused = s.ask(1);
    EXPECT_EQ(refused.status, 503);
    EXPECT_SAYS(refused.body, "not enough memory");
    EXPECT_SAYS(s.log(), "stories260K-q8_0 cannot be loaded: not enough memory on cpu:0: ");
    EXPECT_SAYS(s.log(), "reserved by other models");
    EXPECT_EQ(s.ask(0).status, 200);
  }
  // A worker does not stand in the way of the one that replaces it.
  const auto before = workers_of(s.server().pid());
  ASSERT_EQ(before.size(), 1u);
  ASSERT_TRUE(send_signal(before[0], SIGKILL));
  EXPECT_EQ(s.ask(0).status, 200);
  EXPECT_NE(workers_of(s.server().pid()), before);
  // An unused model makes room.
  EXPECT_EQ(s.ask_until_there_is_room(1), 200) << s.log();
  EXPECT_EQ(s.loaded(), 1);
}

TEST(ServeMemory, ModelsOfOneProcessCountToo) {
  const TwoModels s(0.7, {"--workers", "none"});
  for (int i : {0, 1, 0}) {
    EXPECT_EQ(s.ask_until_there_is_room(i), 200);
    EXPECT_EQ(s.loaded(), 1) << "the other one made room";
  }
  const TwoModels both(0.2, {"--workers", "none"});
  for (int i : {0, 1, 0}) EXPECT_EQ(both.ask(i).status, 200);
  EXPECT_EQ(both.loaded(), 2);
}

TEST(ServeMemory, TwoModelsThatFitTogetherStayBoth) {
  const TwoModels s(0.2);
  for (int i : {0, 1, 0}) EXPECT_EQ(s.ask(i).status, 200);
  EXPECT_EQ(s.loaded(), 2);
  EXPECT_SAYS(s.log(), "other models will use ");
}

}  // namespace
}  // namespace gimbal::test
