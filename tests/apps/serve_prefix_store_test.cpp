// gimbal serve --prefix-store: what one server computed, the next one reads; keys share nothing; all of it is
// counted and told in receipts.
#include <thread>

#include "support/adapters.h"
#include "support/cli.h"
#include "support/golden.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const std::string kText =
    "Once upon a time there was a little girl named Lily who had a dog and a cat and a very big red ball. "
    "One "
    "day she went to the park with her mom, and there was a boy who wanted to play with the ball, too.";

// The parameter: --workers.
class ServePrefixStore : public testing::TestWithParam<const char*> {
 protected:
  ServePrefixStore() { fs::remove_all(folder_); }
  ~ServePrefixStore() override { fs::remove_all(folder_); }

  Args options(const Args& more = {}) const {
    Args all = {"--workers", GetParam(), "--prefix-store", folder_ + ":1G"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const std::string folder_ = temporary_path("serve-prefixes"), log_ = temporary_path("serve-log");
};

INSTANTIATE_TEST_SUITE_P(Workers, ServePrefixStore, testing::Values("none", "cpu"),
                         [](const auto& of) { return std::string(of.param); });

struct Told {
  std::string text, id;
  int cached = 0, stored = 0;
  Json certificate;
};

HttpAnswer with_key(const Serving& s, const std::string& request, const std::string& key) {
  std::string bytes = request;
  if (!key.empty()) bytes.insert(bytes.find("\r\n") + 2, "Authorization: Bearer " + key + "\r\n");
  return s.ask(bytes);
}

Told told(const Serving& s, const std::string& prompt = kText, const std::string& key = "") {
  const Json body = {{"model", s.model}, {"prompt", prompt}, {"max_tokens", 12},
                     {"temperature", 0}, {"seed", 1},        {"certificate", true}};
  const HttpAnswer a = with_key(s, post("/v1/completions", body.dump()), key);
  EXPECT_EQ(a.status, 200) << a.body;
  const Json j = Json::parse(a.body);
  Told t{j["choices"][0]["text"], j["id"], j["usage"]["prompt_tokens_details"]["cached_tokens"], 0, {}};
  const HttpAnswer r = with_key(s, "GET /v1/receipts/" + t.id + " HTTP/1.1\r\nHost: localhost\r\n\r\n", key);
  EXPECT_EQ(r.status, 200) << r.body;
  const Json receipt = Json::parse(r.body);
  t.certificate = receipt["certificates"][0];
  t.certificate.erase("made");
  if (receipt.contains("prefix_store")) {
    t.stored = receipt["prefix_store"][0]["tokens"];
    EXPECT_EQ(receipt["prefix_store"][0].contains("page"), t.stored > 0);
  }
  return t;
}

// Waits until it is `least`: workers report behind their answers.
double metric(const Serving& s, const std::string& name, double least = 0) {
  for (int tries = 0;; tries++) {
    const std::string text = s.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body;
    const size_t at = text.find("\n" + name + " ");
    EXPECT_NE(at, text.npos) << name;
    if (at == text.npos) return -1;
    const double value = std::strtod(text.c_str() + at + name.size() + 2, nullptr);
    if (value >= least || tries == 1200) return value;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TEST_P(ServePrefixStore, ARestartedServerReadsWhatWasComputed) {
  Told without, first;
  {
    const Serving s({"--workers", "none"});
    without = told(s);
    EXPECT_EQ(without.stored, 0);
  }
  {
    Serving s(options());
    first = told(s);
    EXPECT_EQ(first.cached, 0);
    EXPECT_EQ(metric(s, "gimbal_prefix_store_misses_total", 1), 1);
    EXPECT_EQ(s.end(SIGTERM), 0) << "what waits is written";
  }
  Serving s(options());
  const Told again = told(s);
  EXPECT_EQ(again.stored, 64);
  EXPECT_EQ(again.cached, 64);
  EXPECT_EQ(again.text, without.text);
  EXPECT_EQ(again.certificate, without.certificate);
  EXPECT_EQ(first.certificate, without.certificate);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_hits_total", 1), 1);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_tokens_total", 64), 64);
  EXPECT_GT(metric(s, "gimbal_prefix_store_read_bytes_total", 1), 0);
  EXPECT_GT(metric(s, "gimbal_prefix_store_bytes"), 0);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_damaged_pages_total"), 0);
  // In the same process, the memory has more of it.
  const Told third = told(s);
  EXPECT_EQ(third.stored, 0);
  EXPECT_GT(third.cached, 64);
  EXPECT_EQ(third.certificate, without.certificate);
}

TEST_P(ServePrefixStore, AKilledServerLeavesWholePages) {
  Told want;
  {
    const Serving s({"--workers", "none"});
    want = told(s);
  }
  for (int round = 0; round < 6; round++) {
    Serving s(options({"--parallel", "4"}));
    EXPECT_EQ(told(s).certificate, want.certificate);
    // Four texts are being computed and written.
    std::vector<std::unique_ptr<HttpClient>> connections;  // before the server is killed
    for (int i = 0; i < 4; i++) connections.push_back(std::make_unique<HttpClient>(s.port));
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; i++)
      clients.emplace_back([&, i] {
        const Json body = {{"prompt", std::to_string(round * 4 + i) + kText}, {"n_predict", 100}};
        connections[size_t(i)]->ask(post("/completion", body.dump()));
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));
    s.end(SIGKILL);
    for (std::thread& t : clients) t.join();
  }
  Serving s(options(), {}, log_);
  EXPECT_EQ(told(s).certificate, want.certificate);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_damaged_pages_total"), 0);
}

TEST_P(ServePrefixStore, KeysShareNoPage) {
  const std::map<std::string, std::string> keys = {{"GIMBAL_API_KEY", "[\"alpha\", \"beta\"]"}};
  {
    Serving s(options(), keys);
    told(s, kText, "alpha");
    EXPECT_EQ(s.end(SIGTERM), 0);
  }
  {
    Serving s(options(), keys);
    EXPECT_EQ(told(s, kText, "beta").stored, 0) << "another key's";
    EXPECT_EQ(s.end(SIGTERM), 0);
  }
  const Serving s(options(), keys);
  EXPECT_EQ(told(s, kText, "alpha").stored, 64);
}

TEST_P(ServePrefixStore, PagesOfAnAdapterServeItAlone) {
  const std::string path = golden_dir() + "/stories/stories260K-f32.gguf",
                    adapter = make_adapter(path).adapter;
  const auto tokens = [](const Serving& s, double scale) {
    const Json lora = {{{"id", 0}, {"scale", scale}}};
    const Json body = {
        {"prompt", kText}, {"n_predict", 12}, {"temperature", 0}, {"return_tokens", true}, {"lora", lora}};
    const HttpAnswer a = s.ask(post("/completion", body.dump()));
    EXPECT_EQ(a.status, 200) << a.body;
    return Json::parse(a.body)["tokens"];
  };
  const Args with_adapter = options({path, "--lora", adapter + ":0"});
  Json with, without;
  {
    const Serving s({path, "--lora", adapter + ":0", "--workers", "none"});
    with = tokens(s, 1), without = tokens(s, 0);
    EXPECT_NE(with, without) << "an adapter that does nothing";
  }
  {
    Serving s(with_adapter);
    EXPECT_EQ(tokens(s, 1), with);
    EXPECT_EQ(s.end(SIGTERM), 0);
  }
  const Serving s(with_adapter);
  EXPECT_EQ(tokens(s, 0), without);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_misses_total", 1), 1);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_hits_total"), 0) << "pages of a text under an adapter";
  EXPECT_EQ(tokens(s, 1), with);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_hits_total", 1), 1);
}

TEST_P(ServePrefixStore, ADamagedPageIsTold) {
  Told want;
  {
    Serving s(options());
    want = told(s);
    EXPECT_EQ(s.end(SIGTERM), 0);
  }
  for (const auto& e : fs::recursive_directory_iterator(folder_))
    if (e.is_regular_file()) fs::resize_file(e.path(), fs::file_size(e.path()) - 1);
  Serving s(options(), {}, log_);
  const Told again = told(s);
  EXPECT_EQ(again.stored, 0);
  EXPECT_EQ(again.certificate, want.certificate);
  EXPECT_EQ(metric(s, "gimbal_prefix_store_damaged_pages_total", 1), 1);
  EXPECT_EQ(s.end(SIGTERM), 0);
  EXPECT_SAYS(contents_of(log_), "deleted a damaged page");
}

// Texts of the same and of other beginnings, while workers are killed: hit or miss, the same answers.
class ServePrefixStoreKilled : public ServePrefixStore {};
INSTANTIATE_TEST_SUITE_P(Workers, ServePrefixStoreKilled, testing::Values("cpu"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(ServePrefixStoreKilled, WorkersChangeNoAnswer) {
  std::vector<std::string> prompts;
  for (int i = 0; i < 6; i++)
    prompts.push_back(std::to_string(i % 3) + kText + (i < 3 ? "" : " Then they left."));
  std::map<std::string, Json> want;
  {
    const Serving s({"--workers", "none"});
    for (const std::string& p : prompts) want[p] = told(s, p).certificate;
  }
  const Serving s(options({"--parallel", "4"}), {}, log_);
  // One loss a round: a request that is lost several times alone would fail.
  for (size_t round = 0; round < 4; round++) {
    std::vector<std::thread> clients;
    for (size_t i = 0; i < 3; i++)
      clients.emplace_back([&, i] {
        const std::string& p = prompts[(round * 2 + i) % prompts.size()];
        EXPECT_EQ(told(s, p).certificate, want[p]);
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));
    for (const pid_t worker : workers_of(s.pid())) send_signal(worker, SIGKILL);
    for (std::thread& t : clients) t.join();
  }
  // Pages are written behind answers, so on a busy machine a worker may be killed before. A worker that has a
  // text in memory does not read the store, so each of these meets a new one.
  for (int asked = 0; asked < 20; asked++) {
    EXPECT_EQ(told(s, prompts[0]).certificate, want[prompts[0]]);
    if (metric(s, "gimbal_prefix_store_hits_total") > 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(200 * asked));
    for (const pid_t worker : workers_of(s.pid())) send_signal(worker, SIGKILL);
  }
  EXPECT_EQ(metric(s, "gimbal_prefix_store_damaged_pages_total"), 0);
  EXPECT_GT(metric(s, "gimbal_worker_restarts_total"), 0);
  EXPECT_GT(metric(s, "gimbal_prefix_store_hits_total", 1), 0);
}

}  // namespace
}  // namespace gimbal::test
