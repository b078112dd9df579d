// Files that are damaged, hostile or change while they are read, and a machine that is short of memory: what
// is said, and the exit code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>

#include "files/gguf.h"
#include "support/cli.h"
#include "support/gguf_writer.h"
#include "support/tiny_llama.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// The story model with every scale of one tensor turned into a NaN.
std::string damaged_model() {
  std::string bytes = *read_file(story_file("q8_0"));
  auto file = open_gguf(story_file("q8_0"));
  const StoredTensor* t = file->tensors().find("blk.1.attn_output.weight");
  for (size_t i = 0; i < t->bytes; i += 34) std::memset(&bytes[t->offset + i], 0xff, 2);
  const std::string path = temporary_path("nan.gguf");
  EXPECT_TRUE(write_file(path, bytes));
  return path;
}

TEST(Damaged, NanInTheWeightsIsSaidWhateverWasVerifiedBefore) {
  const std::string model = damaged_model(), home = temporary_path("fresh-home"),
                    out = temporary_path("nan.f32");
  fs::create_directories(home);
  auto damaged = [&](Args args) {
    Ran r = gimbal(args, {.environment = {{"HOME", home}}});
    EXPECT_EQ(r.code, 3) << r.err;
    EXPECT_SAYS(r.err, "the weights in this file are damaged");
    EXPECT_SAYS(r.err, "NaN (not a number)");
    EXPECT_FALSE(contains(r.err, "bug report")) << r.err;
  };
  for (int round = 0; round < 2; round++) {
    damaged({"logits", model, "--tokens", "1,2", "-o", out});
    damaged({"logits", model, "--tokens", "1,2", "--positions", "all", "-o", out});
    damaged({"run", model, "-p", "Once", "-n", "2"});
    damaged({"logits", model, "--tokens", "1,2", "-o", out, "--verify", "never"});
    damaged({"run", model, "-p", "Once", "-n", "2", "--verify", "never"});
    EXPECT_FALSE(fs::exists(out));
    // A sound model of the same shape is verified: what follows is the same.
    EXPECT_EQ(
        gimbal({"run", story_file("q8_0"), "-p", "Once", "-n", "2"}, {.environment = {{"HOME", home}}}).code,
        0);
  }
}

TEST(Damaged, AModelThatShrinksWhileItIsLoadedIsNoSignal) {
  // Whatever the moment, the end is an error that names the file, or success.
  const std::string head = *read_file(story_file("f32"));
  const std::string path = temporary_path("shrinking.gguf");
  for (int delay : {0, 1, 3, 6, 10, 15, 25, 40}) {
    ASSERT_TRUE(write_file(path, head));
    std::thread shrinker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      EXPECT_EQ(truncate(path.c_str(), 4096), 0);
    });
    Ran r = gimbal({"run", path, "-p", "Once", "-n", "1", "--greedy", "--verify", "never"});
    shrinker.join();
    EXPECT_TRUE(r.code == 0 || r.code == 3) << r.code << r.err;
    if (r.code == 3) { EXPECT_SAYS(r.err, path); }
  }
}

TEST(Hostile, NewLinesInFilesAndNamesForgeNoLines) {
  const std::string path = temporary_path("new\nline.gguf");
  ASSERT_TRUE(write_file(path, GgufWriter().string("general.architecture", "x\nerror: forged").build()));
  for (const Args& args :
       {Args{"plan", path}, Args{"plan", path + ".gguf"}, Args{"info", path + "/x.gguf"}}) {
    Ran r = gimbal(args);
    EXPECT_NE(r.code, 0);
    EXPECT_FALSE(contains(r.err, "\nerror: forged") || contains(r.err, "new\n")) << r.err;
  }
}

TEST(Info, AnArrayHasItsFirstValues) {
  const std::string out = gimbal({"info", GIMBAL_SOURCE_DIR "/assets/stories260K.gguf"}).out;
  EXPECT_SAYS(out, "512 x i32: 2, 3, 3, 6, 6, ...\n");
  EXPECT_SAYS(out, "512 x string: '<unk>', '<s>', '</s>', '<0x00>', '<0x01>', ...\n");
}

TEST(Hostile, CharactersThatActOnTerminalsAreEscaped) {
  const std::string evil =
      "a\xc2\x9b\x7f\xe2\x80\xae\xe2\x80\x8b"
      "b\xc3\xa9";
  const std::string path = temporary_path("evil.gguf");
  ASSERT_TRUE(write_file(path, GgufWriter().string("general.name", evil).build()));
  for (const Args& args : {Args{"info", path}, Args{"info", path, "--json"}}) {
    Ran r = gimbal(args);
    for (const char* raw : {"\xc2\x9b", "\x7f", "\xe2\x80\xae", "\xe2\x80\x8b"})
      EXPECT_FALSE(contains(r.out, raw)) << r.out;
    EXPECT_SAYS(r.out, "b\xc3\xa9");
  }
  EXPECT_EQ(json_of(gimbal({"info", path, "--json"}))["metadata"]["general.name"], evil) << "the same text";
}

TEST(Hostile, ManyKeysTakeTimeByTheirNumber) {
  // With a search for each key this took minutes.
  GgufWriter w;
  w.string("general.architecture", "none");
  for (int i = 0; i < 150000; i++) w.u32(format("key.{}", i), uint32_t(i));
  const std::string path = temporary_path("many-keys.gguf");
  ASSERT_TRUE(write_file(path, w.build()));
  Ran r = gimbal({"info", path, "--json"});  // the parser of these tests looks for keys, too
  EXPECT_EQ(r.code, 0);
  EXPECT_SAYS(r.out, "\"key.99999\": 99999");
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n') > 150000, true);
}

// An array of 1 GB, all zeros, which take no place on the disk: a copy of it would not fit in this memory.
TEST(Hostile, OfALargeArrayInfoReadsWhatItShows) {
  constexpr uint64_t kBytes = 1'000'000'000;
  GgufWriter w;
  w.string("general.architecture", "none").raw("large", kArray, le<uint32_t>(kU8) + le(kBytes));
  const std::string path = temporary_path("large-array.gguf");
  ASSERT_TRUE(write_file(path, w.build()));
  fs::resize_file(path, fs::file_size(path) + kBytes);
#if defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)  // whose own memory is larger than any limit
  const std::string limits;
#else
  const std::string limits = "-v 1700000";
#endif
  for (const Args& args : {Args{"info", path}, {"info", path, "--json"}}) {
    Ran r = gimbal(args, {.limits = limits});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_SAYS(r.out, "1000000000");
    EXPECT_LT(r.out.size(), 2000u);
  }
}

// `models` and `info` judge a file alike, by its header.
TEST(Supported, IsOnlyWhatRuns) {
  const std::string folder = temporary_path("models");
  fs::create_directories(folder);
  const std::string path = folder + "/headless.gguf";
  ASSERT_TRUE(write_file(path, GgufWriter().string("general.architecture", "llama").build()));
  const Json listed = json_of(gimbal({"models", "--json"}, {.environment = {{"GIMBAL_MODELS", folder}}}));
  std::map<std::string, bool> supported;
  for (const Json& m : listed["models"]) supported[m["name"]] = m["supported"];
  EXPECT_EQ(supported.at("stories260K"), true);
  EXPECT_EQ(supported.at("headless"), false);
  EXPECT_EQ(json_of(gimbal({"info", path, "--json"}))["supported"], false);
}

// A llama whose matrices are i2_s.
std::string ternary_model(uint32_t feed_forward) {
  TinyLlama llama;
  llama.u32("embedding_length", 128), llama.u32("feed_forward_length", feed_forward);
  GgufWriter w;
  for (auto& [key, value] : llama.keys) w.raw(key, value.first, value.second);
  for (auto& [name, t] : llama.tensors) {
    for (uint64_t& d : t.dims) d = d == 12 ? feed_forward : d == 8 ? 128 : d == 4 ? 64 : d;
    if (t.dims.size() == 1) {
      w.floats(name, t.dims, std::vector<float>(t.dims[0], 1.f));
      continue;
    }
    std::string codes;
    for (uint64_t i = 0; i < t.dims[0] * t.dims[1] / 4; i++)
      codes += i % 3 ? '\x46' : '\x91';  // 1 0 1 2, 2 1 0 1
    w.tensor(name, t.dims, 36, codes + le(0.1f) + std::string(28, '\0'));
  }
  return w.build();
}

// Rows of i2_s are whole blocks of 128 values, and need not be of 256.
TEST(Supported, TernaryRowsOf128Values) {
  const std::string folder = temporary_path("ternary"), good = folder + "/good.gguf",
                    bad = folder + "/bad.gguf";
  fs::create_directories(folder);
  ASSERT_TRUE(write_file(good, ternary_model(384)) && write_file(bad, ternary_model(192)));
  const Json listed = json_of(gimbal({"models", "--json"}, {.environment = {{"GIMBAL_MODELS", folder}}}));
  std::map<std::string, Json> models;
  for (const Json& m : listed["models"]) models[m["name"]] = m;
  EXPECT_EQ(models.at("good")["supported"], true);
  EXPECT_EQ(models.at("bad")["supported"], false);
  const std::string reason = "rows of a multiple of 128 values for i2_s, found rows of 192";
  EXPECT_SAYS(models.at("bad")["error"]["message"].get<std::string>(), reason);
  EXPECT_EQ(json_of(gimbal({"info", good, "--json"}))["supported"], true);
  const std::string out = temporary_path("ternary.f32");
  Ran r = gimbal({"logits", good, "--tokens", "1,2,3,4", "--positions", "all", "-o", out, "--strict"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(fs::file_size(out), 4u * 5 * sizeof(float));
  for (const char* command : {"info", "plan"}) {
    r = gimbal({command, bad});
    EXPECT_EQ(r.code, 3) << command;
    EXPECT_SAYS(r.err, reason);
  }
}

TEST(Cache, ARelativeHomeIsSaidToBeRelative) {
  Ran r = gimbal({"run", "-p", "Once", "-n", "1"}, {.environment = {{"HOME", "relative"}}});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.err, "neither XDG_CACHE_HOME nor HOME is an absolute path");
}

TEST(Memory, LimitsOfTheProcessAreFiveWithARemedy) {
  Ran r = gimbal({"run", "-p", "Once", "-n", "1"}, {.limits = "-s 128"});
  EXPECT_EQ(r.code, 5) << r.err;
  EXPECT_SAYS(r.err, "ulimit -s 1024");
  EXPECT_EQ(gimbal({"info"}, {.limits = "-s 128"}).code, 0);
}

TEST(Preference, ThatCannotBeHadIsSaid) {
  // Kernels for which there is a name, and which this choice of instructions leaves out.
  const Args args{"run", "-p", "Once", "-n", "1", "--cpu-variant", "baseline", "--prefer-kernel"};
  const Json kernels = json_of(gimbal({"kernels", "--json"}));
  std::string other;
  for (const char* name : {"cpu.avx2.*", "cpu.neondot.*"})
    if (contains(kernels.dump(), std::string(name).substr(0, 8))) other = name;
  ASSERT_FALSE(other.empty()) << "each CPU that gimbal is built for has variants";
  Args some = args, strict = args;
  some.push_back(other), strict.push_back(other), strict.push_back("--strict");
  EXPECT_SAYS(gimbal(some).err, "matches only kernels that cpu:0 cannot run");
  Ran r = gimbal(strict);
  EXPECT_EQ(r.code, 4) << r.err;
  EXPECT_EQ(gimbal({"run", "-p", "Once", "-n", "1", "--strict", "--gpu-layers", "-1"}).code, 0)
      << "-1 is the default, and no wish";
}

}  // namespace
}  // namespace gimbal::test
