// gimbal run --prefix-store: the same answer and certificate with stored pages as without, in processes that
// come and go; and the folders and files that are refused.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const std::string kText =
    "Once upon a time there was a little girl named Lily who had a dog and a cat and a very big red ball. "
    "One day she went to the park with her mom, and there was a boy who wanted to play with the ball, too.";

class RunPrefixStore : public testing::Test {
 protected:
  ~RunPrefixStore() override { fs::remove_all(folder_); }

  // `cert`: a file that gets the certificate.
  Ran run(Args more = {}, const std::string& text = kText, const RunSetup& setup = {}) const {
    Args all = {"run",           "-p",        text, "-n", "12", "--greedy", "--seed", "1", "--json",
                "--certificate", certificate_};
    all.insert(all.end(), more.begin(), more.end());
    return gimbal(all, setup);
  }
  Ran stored(Args more = {}, const std::string& text = kText, const RunSetup& setup = {}) const {
    more.insert(more.end(), {"--prefix-store", folder_ + ":1G"});
    return run(more, text, setup);
  }
  // Without what differs from run to run.
  Json certificate() const {
    Json j = read_json(certificate_);
    j.erase("made");
    return j;
  }
  static int tokens_of(const Ran& r) {
    const Json j = json_of(r)["prefix_store"];
    return j.is_null() ? 0 : j["tokens"].get<int>();
  }
  std::vector<std::string> pages() const {
    std::vector<std::string> all;
    for (const auto& e : fs::recursive_directory_iterator(folder_))
      if (e.is_regular_file()) all.push_back(e.path().string());
    return all;
  }

  const std::string folder_ = temporary_path("run-prefixes"),
                    certificate_ = temporary_path("certificate.json");
};

TEST_F(RunPrefixStore, GivesTheSameAnswerAndCertificate) {
  const Ran without = run();
  ASSERT_EQ(without.code, 0) << without.err;
  const Json wanted = certificate();
  EXPECT_TRUE(json_of(without)["prefix_store"].is_null());
  const Ran first = stored();
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(tokens_of(first), 0);
  EXPECT_EQ(certificate(), wanted);
  EXPECT_FALSE(pages().empty());
  const Ran second = stored();
  EXPECT_EQ(tokens_of(second), 64);
  EXPECT_EQ(json_of(second)["text"], json_of(without)["text"]);
  EXPECT_EQ(certificate(), wanted);
  EXPECT_EQ(json_of(second)["prompt_tokens"].get<int>() + 64, json_of(first)["prompt_tokens"].get<int>());
  // A longer text begins with the answer, too.
  const Ran longer = stored({}, kText + json_of(first)["text"].get<std::string>() + " They had fun.");
  EXPECT_GE(tokens_of(longer), 64);
  for (const Ran* r : {&first, &second})
    EXPECT_EQ(r->err.find("prefix store"), std::string::npos) << "nothing to report: " << r->err;
  // Drafts and other batches read the same pages.
  for (const Args& more : {Args{"--draft", "ngram"}, Args{"--batch", "8"}, Args{"--ctx", "300"}}) {
    EXPECT_EQ(tokens_of(stored(more)), 64) << more[0];
    EXPECT_EQ(certificate()["logits"], wanted["logits"]) << more[0];
  }
}

TEST_F(RunPrefixStore, PagesOfOtherModelsSettingsAndSaltsAreNotFound) {
  ASSERT_EQ(stored().code, 0);
  EXPECT_EQ(tokens_of(stored({"--kv-type", "f32"})), 0);
  EXPECT_EQ(tokens_of(stored({"-m", story_file("q8_0")})), 0);
  EXPECT_EQ(tokens_of(stored({"--rope-freq-base", "20000"})), 0);
  const std::string salt = temporary_path("salt"), other = temporary_path("other-salt"),
                    small = temporary_path("small-salt");
  ASSERT_TRUE(write_file(salt, std::string(32, 'a')) && write_file(other, std::string(32, 'b')) &&
              write_file(small, "short"));
  EXPECT_EQ(tokens_of(stored({"--prefix-store-salt", salt})), 0);
  EXPECT_EQ(tokens_of(stored({"--prefix-store-salt", salt})), 64);
  EXPECT_EQ(tokens_of(stored({"--prefix-store-salt", other})), 0);
  const Ran refused = stored({"--prefix-store-salt", small});
  EXPECT_EQ(refused.code, 2);
  EXPECT_SAYS(refused.err, "has 5 bytes, expected 16 or more");
  EXPECT_EQ(tokens_of(stored()), 64);
}

TEST_F(RunPrefixStore, ADamagedPageIsReportedAndComputedAgain) {
  run();
  const Json wanted = certificate();
  ASSERT_EQ(stored().code, 0);
  for (const std::string& page : pages()) {
    std::fstream file(page, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('!');
  }
  const Ran again = stored();
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(tokens_of(again), 0);
  EXPECT_SAYS(again.err, "the prefix store deleted a damaged page and computes it again");
  EXPECT_EQ(certificate(), wanted);
  EXPECT_EQ(tokens_of(stored()), 64) << "it was written again";
}

TEST_F(RunPrefixStore, AFullDiskIsReportedAndTheAnswerComes) {
  run();
  const Json wanted = certificate();
  ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  // Files of at most 8 blocks of 512 bytes: certificates and pages are larger, so only the answer is
  // compared.
  Args args = {"run", "-p", kText, "-n", "12", "--greedy", "--json", "--prefix-store", folder_};
  const Ran full = gimbal(args, {.limits = "-f 8"});
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_SAYS(full.err, "a page of the prefix store is not written: cannot write");
  EXPECT_EQ(json_of(full)["tokens"], wanted["answer"]["tokens"]);
  EXPECT_TRUE(pages().empty());
}

TEST_F(RunPrefixStore, RefusesWhatItCannotKeepAndSaysWhy) {
  const auto refused = [&](const Args& more, int code = 2) {
    const Ran r = run(more);
    EXPECT_EQ(r.code, code) << r.err;
    return r.err;
  };
  EXPECT_SAYS(refused({"--prefix-store", folder_ + ":10X"}), "'10X' is no size of 100K or more");
  EXPECT_SAYS(refused({"--prefix-store", folder_ + ":9K"}), "'9K' is no size of 100K or more");
  EXPECT_SAYS(refused({"--prefix-store", ":10G"}), "names no folder");
  EXPECT_SAYS(refused({"--prefix-store-salt", "/dev/null"}), "there is none");
  ASSERT_TRUE(write_file(folder_, "x"));
  EXPECT_SAYS(refused({"--prefix-store", folder_}), "is no folder");
  fs::remove(folder_);
  ASSERT_EQ(::mkdir(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_SAYS(refused({"--prefix-store", folder_}), "has mode 0755, expected 0700");
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  const Ran fast = run({"--prefix-store", folder_, "--numerics", "fast"});
  EXPECT_NE(fast.code, 0);
  EXPECT_SAYS(fast.err, "fast kernels may run");
}

}  // namespace
}  // namespace gimbal::test
