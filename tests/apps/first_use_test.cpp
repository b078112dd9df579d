// Verified before use: checked once per device, driver and build; what gave wrong numbers is never used, and
// said aloud.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const Args kRun{"run", "-p", "Once upon a time", "-n", "5", "--greedy", "-t", "1", "--backend", "cpu"};

// A cache folder of its own for each test.
struct Cache {
  explicit Cache(const std::string& name)
      : folder(temporary_path("verified-" + name)), file(folder + "/gimbal/verified.json") {
    fs::remove_all(folder);
  }
  Ran run(const Args& args) const { return gimbal(args, {.environment = {{"XDG_CACHE_HOME", folder}}}); }
  Json read() const {
    auto text = read_file(file);
    EXPECT_TRUE(text) << file;
    return text ? Json::parse(*text, nullptr, false) : Json();
  }
  std::string folder, file;
};

TEST(FirstUse, ChecksWhatTheModelNeedsOnceAndKeepsIt) {
  Cache cache("once");
  Ran first = cache.run(kRun);
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.err, "") << "nothing to say when all is well";
  const Json kept = cache.read();
  ASSERT_EQ(kept["verified"].size(), 1u);
  const Json& entry = kept["verified"][0];
  for (const char* part : {"device", "name", "driver", "features", "threads", "build"})
    EXPECT_TRUE(entry["key"].contains(part)) << part;
  EXPECT_GT(entry["kernels"].size(), 7u);
  for (const auto& [kernel, v] : entry["kernels"].items()) {
    EXPECT_GT(v["cases"], 0) << kernel;
    EXPECT_EQ(v["wrong"], "") << kernel;
  }
  EXPECT_EQ(entry["models"].size(), 1u);
  const auto written = fs::last_write_time(cache.file);
  Ran again = cache.run(kRun);
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(fs::last_write_time(cache.file), written) << "nothing was checked anew";
}

TEST(FirstUse, AWrongKernelIsNeverUsedAndSaidAloud) {
  Cache cache("wrong");
  const Ran right = cache.run(kRun);
  Json kept = cache.read();
  std::string wrong;
  for (auto& [kernel, v] : kept["verified"][0]["kernels"].items())
    if (kernel.find(".mat_mul.") != std::string::npos)
      wrong = kernel, v["wrong"] = "wrong numbers on this machine in 3 of 17 cases";
  ASSERT_NE(wrong, "");
  ASSERT_TRUE(write_file(cache.file, kept.dump()));
  Ran r = cache.run(with(kRun, {"--json"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.err, wrong + " is not used: wrong numbers on this machine in 3 of 17 cases");
  const Json j = json_of(r);
  EXPECT_EQ(j["text"].get<std::string>() + "\n", right.out) << "the next kernel gives the same";
  for (const Json& k : j["kernels"]) EXPECT_NE(k["kernel"], wrong);
  EXPECT_SAYS(j["fallbacks"].dump(), wrong);
  EXPECT_SAYS(cache.run({"explain", "-t", "1", "--json"}).out, "quarantined: wrong numbers");
  Ran strict = cache.run(with(kRun, {"--strict"}));
  EXPECT_EQ(strict.code, 4);
  EXPECT_SAYS(strict.err, wrong);
  EXPECT_EQ(cache.run(with(kRun, {"--strict", "--verify", "always"})).code, 0) << "asked anew, it is right";
  EXPECT_EQ(cache.run(kRun).err, "") << "and that is what is kept";
}

TEST(FirstUse, AnotherBuildIsNotBelieved) {
  Cache cache("build");
  cache.run(kRun);
  Json kept = cache.read();
  kept["verified"][0]["key"]["build"] = "another one";
  for (auto& [kernel, v] : kept["verified"][0]["kernels"].items()) v["wrong"] = "yes";
  ASSERT_TRUE(write_file(cache.file, kept.dump()));
  EXPECT_EQ(cache.run(kRun).err, "");
  EXPECT_EQ(cache.read()["verified"].size(), 2u);
}

TEST(FirstUse, ADamagedCacheIsFoundOutAgain) {
  Cache cache("damaged");
  cache.run(kRun);
  Json kept = cache.read();
  for (const char* kernels : {"3", "{\"x\": 4}", "{\"cpu.avx2.add.f32\": {\"cases\": \"many\"}}"}) {
    Json changed = kept;
    changed["verified"][0]["kernels"] = Json::parse(kernels);
    changed["verified"][0]["models"] = 7;
    ASSERT_TRUE(write_file(cache.file, changed.dump()));
    EXPECT_EQ(cache.run(kRun).code, 0) << kernels;
    EXPECT_GT(cache.read()["verified"][0]["kernels"].size(), 7u) << kernels;
  }
}

TEST(FirstUse, NeverMeansNever) {
  Cache cache("never");
  EXPECT_EQ(cache.run(with(kRun, {"--verify", "never"})).code, 0);
  EXPECT_FALSE(fs::exists(cache.file));
}

TEST(Verify, TriesAModelAndSaysOnWhat) {
  Ran r = gimbal({"verify", "default", "--kernel", "*.add.f32", "-t", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* words : {"gimbal ", "Linux", "features:", "token by token: the same bits"})
    EXPECT_SAYS(r.out, words);
  const Json j = json_of(gimbal({"verify", "default", "--kernel", "*.add.f32", "-t", "1", "--json"}));
  for (const char* key : {"machine", "build", "device", "device_name", "driver", "model", "model_checks"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["model_checks"][0]["same_bits"], true);
}

}  // namespace
}  // namespace gimbal::test
