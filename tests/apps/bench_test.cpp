// gimbal bench: limits that are measured once and kept, and the kernels alone. How fast anything is, is not
// tested.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// A cache folder of its own for each test.
struct Cache {
  explicit Cache(const std::string& name)
      : folder(temporary_path("cache-" + name)), file(folder + "/gimbal/limits.json") {
    fs::remove_all(folder);
  }
  RunSetup setup() const { return {.environment = {{"XDG_CACHE_HOME", folder}}}; }
  std::string folder, file;
};

// How large the limits are is not looked at: little memory will do to measure them.
const Args kModel{
    "bench", "-p", "16", "-n", "4", "-r", "1", "-t", "1", "--backend", "cpu", "--json", "--limit-megabytes",
    "8"};

// A cache that knows this machine: measured once, by the first test that needs it, since that takes seconds.
Cache knowing(const std::string& name) {
  static const std::string measured = [] {
    Cache first("first");
    EXPECT_EQ(gimbal(kModel, first.setup()).code, 0);
    auto text = read_file(first.file);
    EXPECT_TRUE(text);
    return text ? *text : "";
  }();
  Cache cache(name);
  fs::create_directories(cache.folder + "/gimbal");
  EXPECT_TRUE(write_file(cache.file, measured));
  return cache;
}

TEST(Limits, AreMeasuredOnceAndKept) {
  Cache cache("once");
  Ran first = gimbal(kModel, cache.setup());
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  const Json a = json_of(first)["limits"];
  expect_keys(a, {"read_bytes_per_second", "int8_operations_per_second", "fp32_operations_per_second",
                  "instruction_set", "threads", "measured", "cached_in", "from_cache"});
  for (const char* what :
       {"read_bytes_per_second", "int8_operations_per_second", "fp32_operations_per_second"})
    EXPECT_GT(a[what], 0) << what;
  EXPECT_EQ(a["from_cache"], false);
  EXPECT_EQ(a["threads"], 1);
  EXPECT_EQ(a["cached_in"], cache.file);
  Json b = json_of(gimbal(kModel, cache.setup()))["limits"];
  EXPECT_EQ(b["from_cache"], true);
  b["from_cache"] = false;
  EXPECT_EQ(a, b) << "the same to the last digit";
  const std::string text =
      gimbal({"bench", "-p", "16", "-n", "4", "-r", "1", "-t", "1", "--limit-megabytes", "8"}, cache.setup())
          .out;
  EXPECT_SAYS(text, "measured " + a["measured"].get<std::string>());
  EXPECT_SAYS(text, "cached in " + cache.file);
  EXPECT_EQ(json_of(gimbal(with(kModel, {"--measure-again"}), cache.setup()))["limits"]["from_cache"], false);
}

TEST(Limits, AreThoseOfTheKeyOnly) {
  Cache cache = knowing("key");
  auto other = [&](Args args) { return json_of(gimbal(args, cache.setup()))["limits"]["from_cache"]; };
  EXPECT_EQ(other(with(kModel, {"-t", "2"})), false) << "other threads";
  EXPECT_EQ(other(with(kModel, {"--cpu-variant", "baseline"})), false) << "another instruction set";
  EXPECT_EQ(other(with(kModel, {"--limit-megabytes", "9"})), false) << "measured in another way";
  EXPECT_EQ(other(kModel), true) << "the first is still there";
  auto text = read_file(cache.file);
  ASSERT_TRUE(text);
  Json kept = Json::parse(*text);
  ASSERT_EQ(kept["limits"].size(), 4u);
  for (Json& entry : kept["limits"]) {
    for (const char* part : {"name", "features", "device", "threads", "build"})
      ASSERT_TRUE(entry["key"].contains(part)) << part;
    EXPECT_NE(entry["key"]["build"], "");
    entry["key"]["build"] = "another one";
  }
  ASSERT_TRUE(write_file(cache.file, kept.dump()));
  EXPECT_EQ(other(kModel), false) << "another build";
}

TEST(Limits, ACacheThatIsBrokenIsNoError) {
  Cache cache("broken");
  fs::create_directories(cache.folder + "/gimbal");
  for (const char* garbage : {"{\"limits\": [1, {\"key\": []}, null]}", "\xff\xfe"}) {
    ASSERT_TRUE(write_file(cache.file, garbage));
    Ran r = gimbal(kModel, cache.setup());
    EXPECT_EQ(r.code, 0) << garbage << r.err;
    EXPECT_EQ(json_of(r)["limits"]["from_cache"], false) << garbage;
  }
  // An entry of this very machine, but with numbers that are none.
  Json kept = Json::parse(*read_file(cache.file));
  kept["limits"].back()["read_bytes_per_second"] = "fast";
  ASSERT_TRUE(write_file(cache.file, kept.dump()));
  EXPECT_EQ(json_of(gimbal(kModel, cache.setup()))["limits"]["from_cache"], false);
}

TEST(Limits, ThatAreExceededAreDoubted) {
  Cache cache = knowing("doubted");
  EXPECT_EQ(gimbal(kModel, cache.setup()).err, "");
  Json kept = Json::parse(*read_file(cache.file));
  kept["limits"].back()["fp32_operations_per_second"] =
      1000;  // as if nearly all of the machine had been busy
  ASSERT_TRUE(write_file(cache.file, kept.dump()));
  Ran r = gimbal(kModel, cache.setup());
  EXPECT_EQ(r.code, 0);
  EXPECT_SAYS(r.err, "--measure-again");
}

TEST(Limits, ACacheThatCannotBeWrittenIsToldOnce) {
  Cache cache("unwritable");
  ASSERT_TRUE(write_file(cache.folder, "a file where the folder should be"));
  Ran r = gimbal(kModel, cache.setup());
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_GT(json_of(r)["limits"]["read_bytes_per_second"], 0);
  EXPECT_EQ(json_of(r)["limits"]["cached_in"], "");
  // Each of the two caches says so once.
  for (const std::string note :
       {"the limits of this machine could not be saved", "the results of verification could not be saved"}) {
    EXPECT_SAYS(r.err, note);
    EXPECT_EQ(r.err.find(note), r.err.rfind(note));
  }
  Ran nowhere = gimbal(kModel, {.environment = {{"XDG_CACHE_HOME", "relative"}, {"HOME", ""}}});
  EXPECT_EQ(nowhere.code, 0);
  EXPECT_SAYS(nowhere.err, "neither XDG_CACHE_HOME nor HOME");
  Ran home = gimbal(kModel, {.environment = {{"XDG_CACHE_HOME", ""}}});
  EXPECT_EQ(json_of(home)["limits"]["cached_in"], quiet_home().at("HOME") + "/.cache/gimbal/limits.json");
}

TEST(Bench, PromptAndGenerationHaveTheirShareOfALimit) {
  Cache cache = knowing("shares");
  // The story model: 260,032 weights in matrices (the embedding's table is its output too), 5 layers, 8 heads
  // of 8.
  auto check = [&](const char* type, const char* limit) {
    Args args{"bench",  story_file(type),    "-p", "16", "-n", "4", "-r", "1", "-t", "1",
              "--json", "--limit-megabytes", "8"};
    Json j = json_of(gimbal(args, cache.setup()));
    const double rate = j["prompt_operations_per_second"], tokens = j["prompt_tokens_per_second"]["median"];
    EXPECT_EQ(j["prompt_limit"], limit);
    EXPECT_NEAR(rate, tokens / 16 * j["prompt_operations"].get<double>(), rate * 1e-9);
    const Json& l = j["limits"];
    EXPECT_NEAR(j["prompt_share"].get<double>(),
                rate / l[std::string(limit) + "_operations_per_second"].get<double>(), 1e-9);
    EXPECT_NEAR(j["memory_share"].get<double>(),
                j["weight_bytes_per_second"].get<double>() / l["read_bytes_per_second"].get<double>(), 1e-9);
    EXPECT_EQ(j["memory_bytes_per_second"], l["read_bytes_per_second"]);
    return j["prompt_operations"].get<double>();
  };
  const double layers = 260032.0 - 64 * 11 - 512 * 64;  // without norms and the table
  // Two operations per weight and token; what follows the last attention (its output of 64 x 64, three
  // matrices of 64 x 172) and the output matrix for the last token only; scores and sums of attention.
  const double behind = 64 * 64 + 3 * 64 * 172;
  const double expected = 2 * 16 * (layers - behind) + 2 * (behind + 512 * 64) + 5 * 4. * 64 * (16 * 17 / 2);
  EXPECT_DOUBLE_EQ(check("f32", "fp32"), expected);
  EXPECT_DOUBLE_EQ(check("q8_0", "int8"), expected);
  Json skipped = json_of(
      gimbal({"bench", "-p", "0", "-n", "4", "-r", "1", "-t", "1", "--json", "--limit-megabytes", "8"},
             cache.setup()));
  EXPECT_TRUE(skipped["prompt_share"].is_null());
  const std::string text =
      gimbal({"bench", "-p", "8", "-n", "4", "-r", "1", "-t", "1", "--limit-megabytes", "8"}, cache.setup())
          .out;
  for (const char* words :
       {"% of the fp32 limit", "% of the memory's speed", "limits: memory", "a cache may hold them"})
    EXPECT_SAYS(text, words);
}

TEST(BenchSequences, EveryNumberAtEveryDepth) {
  for (bool shared : {false, true}) {
    Args args{"bench", "--sequences", "1,3", "--depth", "0,70", "-n", "4", "-r", "2", "-t", "1", "--json"};
    if (shared) args.push_back("--shared-prefix");
    const Json j = json_of(gimbal(args));
    EXPECT_EQ(j["shared_prefix"], shared);
    ASSERT_EQ(j["depths"].size(), 2u);
    for (size_t d = 0; d < 2; d++) {
      const Json& depth = j["depths"][d];
      EXPECT_EQ(depth["depth"], d == 0 ? 0 : 70);
      EXPECT_EQ(depth["prompt_tokens_per_second"].is_null(), d == 0);
      ASSERT_EQ(depth["generation"].size(), 2u);
      EXPECT_EQ(depth["generation"][1]["sequences"], 3);
      for (const Json& cell : depth["generation"])
        EXPECT_GT(cell["generation_tokens_per_second"]["min"].get<double>(), 0);
    }
  }
  EXPECT_SAYS(gimbal({"bench", "--sequences", "2", "-n", "2", "-r", "1"}).out, "depth");
}

TEST(BenchSequences, BadUsage) {
  EXPECT_SAYS(gimbal({"bench", "--sequences", "0"}).err, "--sequences must be from 1 to 1024, not 0");
  EXPECT_SAYS(gimbal({"bench", "--depth", ""}).err, "--depth names no number");
  const Ran beyond =
      gimbal({"bench", "-p", "1000000", "-n", "1000000", "-r", "1", "--json", "--limit-megabytes", "8"});
  EXPECT_SAYS(beyond.err, "note: -p 1000000: measured with 512, up to the model's context");
  EXPECT_SAYS(beyond.err, "note: -n 1000000: measured with 511");
  EXPECT_SAYS(gimbal({"bench", "--depth", "64", "-p", "8"}).err,
              "-p has no effect with --sequences and --depth");
  EXPECT_SAYS(gimbal({"bench", "--sequences", "2", "-n", "0"}).err, "leaves nothing to measure");
  EXPECT_SAYS(gimbal({"bench", "--depth", "64", "-n", "8", "--ctx", "70"}).err, "--ctx 70 is too small");
  EXPECT_SAYS(gimbal({"bench", "--kernels", "--depth", "64"}).err, "--depth has no effect with --kernels");
}

const Args kQuick{"bench", "--kernels", "--milliseconds",    "1", "--megabytes", "1", "--rows", "1,64",
                  "-t",    "1",         "--limit-megabytes", "8"};

TEST(BenchKernels, ListsWhatWouldBeChosenHere) {
  Cache cache = knowing("kernels");
  // The kernel of the highest rank for every op and format, when one row is computed.
  std::map<std::string, Json> best;
  std::set<std::string> ops;
  const Json table = json_of(gimbal({"kernels", "--json"}));
  for (const Json& k : table["kernels"]) {
    if (!k["available"]) continue;
    ops.insert(k["op"]);
    if (k["op"] != "mat_mul" || k.value("min_rows", 0) > 1 || k["in0"].size() != 1) continue;
    Json& b = best[k["in0"][0]];
    if (b.is_null() || b["rank"] < k["rank"]) b = k;
  }
  ASSERT_GT(best.size(), 20u);

  Ran r = gimbal(with(kQuick, {"--json"}), cache.setup());
  ASSERT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  expect_keys(j, {"device", "fallbacks", "limits", "kernels"});
  std::set<std::string> measured_ops, measured;
  for (const Json& k : j["kernels"]) {
    expect_keys(k, {"op", "kernel", "format", "shape", "measurements", "not_measured"});
    measured_ops.insert(k["op"]);
    EXPECT_EQ(k["not_measured"], "") << k;
    ASSERT_FALSE(k["measurements"].empty()) << k;
    for (const Json& m : k["measurements"]) {
      expect_keys(
          m, {"rows", "rows_computed", "ops", "passes", "seconds", "bytes_read", "bytes_written",
              "operations", "memory_bytes", "bytes_per_second", "operations_per_second", "limit", "share"});
      EXPECT_GT(m["seconds"], 0);
      if (k["op"] != "mat_mul") continue;
      const bool one = m["rows"] == 1;
      if (one) measured.insert(k["kernel"]);
      EXPECT_EQ(m["limit"] == "read", one) << k;
      const std::string limit =
          m["limit"].get<std::string>() + (one ? "_bytes_per_second" : "_operations_per_second");
      const double rate = m[one ? "bytes_read" : "operations"].get<double>() / m["seconds"].get<double>();
      EXPECT_NEAR(m["share"].get<double>(), rate / j["limits"][limit].get<double>(), 1e-9) << k;
    }
  }
  EXPECT_EQ(measured_ops, ops);
  std::set<std::string> expected;
  for (const auto& [format, k] : best) expected.insert(k["kernel"]);
  EXPECT_EQ(measured, expected);

  Ran text = gimbal(with(kQuick, {"--kernel", "*.mat_mul.q8_0"}), cache.setup());
  for (const char* words : {"mat_mul.q8_0", "2048 x 8192", "1 row", "64 rows", "GB/s", "op/s", "%"})
    EXPECT_SAYS(text.out, words);
}

TEST(BenchKernels, BadUsage) {
  struct Case {
    Args args;
    const char* says;
  };
  const Case cases[] = {
      {{"bench", "--kernel", "x"}, "--kernel is for measuring kernels"},
      {{"bench", "--all"}, "--all is for measuring kernels"},
      {{"bench", "--rows", "1"}, "--rows is for measuring kernels"},
      {{"bench", "--kernels", "default"}, "MODEL has no effect with --kernels"},
      {{"bench", "--kernels", "-p", "5"}, "-p has no effect with --kernels"},
      {{"bench", "--kernels", "--ctx", "5"}, "--ctx has no effect with --kernels"},
      {{"bench", "--kernels", "--kernel", "nothing"}, "matches no kernel"},
      {{"bench", "--kernels", "--rows", "1,x"}, "--rows must be whole numbers"},
      {{"bench", "--kernels", "--rows", "0"}, "from 1 to 4096"},
      {{"bench", "--kernels", "--rows", ""}, "--rows names no number"},
      {{"bench", "--kernels", "--milliseconds", "0"}, "--milliseconds"},
      {{"bench", "--kernels", "--megabytes", "many"}, "--megabytes"},
      {{"bench", "--kernels", "--kernel", "cpu.baseline.*", "--prefer-kernel", "cpu.baseline.*", "--strict",
        "--backend", "nothing"},
       "--backend"},
  };
  Cache cache("usage");
  for (const Case& c : cases) {
    Ran r = gimbal(c.args, cache.setup());
    EXPECT_EQ(r.code, 2) << c.says << r.err;
    EXPECT_SAYS(r.err, c.says);
  }
  EXPECT_FALSE(fs::exists(cache.file)) << "nothing was measured";
}

TEST(BenchKernels, OutrankedOnesOnlyWhenAsked) {
  Json table = json_of(gimbal({"kernels", "--json"}));
  std::set<std::string> variants;
  for (const Json& k : table["kernels"])
    if (k["available"]) variants.insert(k["variant"]);
  Cache cache = knowing("outranked");
  const Args one = with(kQuick, {"--kernel", "cpu.baseline.add.f32"});
  if (variants.size() > 1) {
    Ran r = gimbal(one, cache.setup());
    EXPECT_EQ(r.code, 2);
    EXPECT_SAYS(r.err, "--all");
  }
  EXPECT_SAYS(gimbal(with(one, {"--all"}), cache.setup()).out, "cpu.baseline.add.f32");
  EXPECT_SAYS(gimbal(with(one, {"--prefer-kernel", "cpu.baseline.*"}), cache.setup()).out,
              "cpu.baseline.add.f32");
}

}  // namespace
}  // namespace gimbal::test
