// Slots of a server, saved in files and restored: POST /slots/N, as llama.cpp's server has it.
#include "support/serving.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const char* const kText =
    "Once upon a time there was a little girl named Lily who had a dog and a cat and a very big red ball. "
    "One "
    "day she went to the park with her mom, and there was a boy who wanted to play with the ball, too.";

std::string folder_for(const std::string& name) {
  const std::string path = temporary_path(name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

// `workers`: none: the server computes itself.
Args saving(const std::string& folder, const Args& more = {}, const std::string& workers = "none") {
  Args all = {"--slot-save-path", folder, "--workers", workers, "--parallel", "2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Written {
  std::string text;
  int computed = 0, cached = 0;  // tokens of the prompt
};
Written written(const Serving& s) {
  const HttpAnswer a =
      s.ask(post("/completion", Json({{"prompt", kText}, {"n_predict", 8}, {"temperature", 0}}).dump()));
  EXPECT_EQ(a.status, 200) << a.body;
  const Json j = Json::parse(a.body);
  return {j["content"], j["timings"]["prompt_n"], j["timings"]["cache_n"]};
}

HttpAnswer slot(const Serving& s, const std::string& action, const Json& body = Json::object(),
                const std::string& number = "0") {
  return s.ask(post("/slots/" + number + "?action=" + action, body.dump()));
}
Json done(const HttpAnswer& a) {
  EXPECT_EQ(a.status, 200) << a.body;
  return Json::parse(a.body, nullptr, false);
}

class ServeSlotsOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Workers, ServeSlotsOf, testing::Values("none", "cpu", "cpu,cpu"),
                         [](const auto& of) { return "Of" + std::to_string(of.index); });

TEST_P(ServeSlotsOf, ARestoredTextIsNotComputedAgain) {
  const std::string folder = folder_for("slots");
  Written first;
  int saved = 0;
  {
    const Serving s(saving(folder, {}, GetParam()));
    EXPECT_EQ(slot(s, "save", {{"filename", "a.bin"}}).status, 400) << "no text yet";
    first = written(s);
    EXPECT_EQ(first.cached, 0);
    const Json j = done(slot(s, "save", {{"filename", "a.bin"}}));
    saved = j["n_saved"];
    EXPECT_EQ(j["id_slot"], 0);
    EXPECT_EQ(j["filename"], "a.bin");
    EXPECT_GE(saved, first.computed) << "the prompt and what was written behind it";
    EXPECT_EQ(j["n_written"], fs::file_size(folder + "/a.bin"));
    EXPECT_GE(j["timings"]["save_ms"], 0);
  }
  const Serving s(saving(folder, {}, GetParam()));
  const Json j = done(slot(s, "restore", {{"filename", "a.bin"}}, "1"));
  EXPECT_EQ(j["n_restored"], saved);
  EXPECT_EQ(j["n_read"], fs::file_size(folder + "/a.bin"));
  const Written again = written(s);
  EXPECT_EQ(again.text, first.text);
  EXPECT_GE(again.cached, first.computed - 1) << "all but the token whose logits are needed";
  EXPECT_LE(again.computed, 1);
  // The command line reads the same files: the state is that of a prompt cache.
  const Json erased = done(slot(s, "erase"));
  EXPECT_GE(erased["n_erased"].get<int>(), first.computed);
  const Written anew = written(s);
  EXPECT_EQ(anew.cached, 0);
  EXPECT_EQ(anew.text, first.text);
}

TEST(ServeSlots, OnlyTheTextOfTheSlotIsSaved) {
  const std::string folder = folder_for("slots-own");
  const Serving s(saving(folder));
  const Written first = written(s);
  // Another client continues the same beginning.
  s.ask(post(
      "/completion",
      Json({{"prompt", std::string(kText) + " A secret."}, {"n_predict", 30}, {"temperature", 0}}).dump()));
  written(s);
  const int saved = done(slot(s, "save", {{"filename", "b.bin"}}))["n_saved"];
  EXPECT_LE(saved, first.computed + 8) << "nothing behind it";
}

TEST_P(ServeSlotsOf, RefusesOtherFilesAndNames) {
  const std::string folder = folder_for("slots-wrong");
  const Serving s(saving(folder, {}, GetParam()));
  written(s);
  done(slot(s, "save", {{"filename", "a.bin"}}));
  for (const char* name : {"", "../a.bin", "a/b", ".hidden", "..", "a\\b", "c:d", "a\nb"}) {
    const HttpAnswer a = slot(s, "save", {{"filename", name}});
    EXPECT_EQ(a.status, 400) << name;
    EXPECT_EQ(Json::parse(a.body)["error"]["param"], "filename") << a.body;
  }
  EXPECT_EQ(slot(s, "restore", {{"filename", "none.bin"}}).status, 404);
  EXPECT_EQ(slot(s, "restore", {{"filename", "a.bin"}}, "4").status, 404) << "there are two slots a worker";
  EXPECT_EQ(slot(s, "restore", {{"filename", "a.bin"}}, "x").status, 404);
  EXPECT_EQ(slot(s, "move", {{"filename", "a.bin"}}).status, 400);
  EXPECT_EQ(slot(s, "save", {{"filename", "a.bin"}, {"x", 1}}).status, 400);

  std::string bytes = contents_of(folder + "/a.bin");
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(folder + "/damaged.bin", std::ios::binary) << bytes;
  std::ofstream(folder + "/other.bin", std::ios::binary) << "hello";
  for (const char* name : {"damaged.bin", "other.bin"}) {
    const HttpAnswer a = slot(s, "restore", {{"filename", name}});
    EXPECT_EQ(a.status, 400) << name;
    EXPECT_EQ(a.body.find(folder), std::string::npos) << "no path leaves the machine";
  }
  const Serving other(saving(folder, {"-m", story_file("q8_0")}, GetParam()));
  EXPECT_EQ(slot(other, "restore", {{"filename", "a.bin"}}).status, 400) << "of another model";
}

// What a lost worker kept is gone; a file of it is not.
TEST(ServeSlots, AKilledWorkerLosesNoFile) {
  const std::string folder = folder_for("slots-killed");
  const Serving s(saving(folder, {}, "cpu"));
  const Written first = written(s);
  const int saved = done(slot(s, "save", {{"filename", "a.bin"}}))["n_saved"];
  const std::vector<pid_t> workers = workers_of(s.pid());
  ASSERT_EQ(workers.size(), 1u);
  ASSERT_TRUE(send_signal(workers[0], SIGKILL));
  // The call that the worker had fails, or the next worker has it.
  HttpAnswer a = slot(s, "restore", {{"filename", "a.bin"}});
  if (a.status != 200) a = slot(s, "restore", {{"filename", "a.bin"}});
  EXPECT_EQ(done(a)["n_restored"], saved);
  const Written again = written(s);
  EXPECT_EQ(again.text, first.text);
}

TEST(ServeSlots, OnlyWithTheOperatorsFolder) {
  const Serving s({"--workers", "none"});
  EXPECT_EQ(slot(s, "save", {{"filename", "a.bin"}}).status, 501);
  const Ran nowhere = gimbal({"serve", "--port", "0", "--workers", "none", "--slot-save-path", "/nowhere/x"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_SAYS(nowhere.err, "/nowhere/x");
}

}  // namespace
}  // namespace gimbal::test
