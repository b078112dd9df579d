// Where packed weights of a model are, and the reasons why there are none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "discovery/registry.h"
#include "engine/engine.h"
#include "engine/packed.h"
#include "files/packed_file.h"
#include "support/cli.h"
#include "support/placed.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

// Variables of the environment, as they were before afterwards.
class Environment {
 public:
  void set(const char* name, const char* value) {
    const char* was = std::getenv(name);
    before_.push_back({name, was ? std::optional<std::string>(was) : std::nullopt});
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() {
    for (auto at = before_.rbegin(); at != before_.rend(); ++at)
      at->second ? setenv(at->first, at->second->c_str(), 1) : unsetenv(at->first);
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

std::vector<std::string> places(const std::string& path) { return packed_places({"name", path, nullptr}); }

TEST(PackedPlaces, BesideTheModelAndInTheCache) {
  Environment environment;
  environment.set("XDG_CACHE_HOME", "/caches");
  EXPECT_TRUE(places("").empty()) << "the model inside the program";
  const auto all = places("/models/a.gguf");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], "/models/a.gguf.packed");
  const std::string folder = "/caches/gimbal/packed/",
                    name = all[1].substr(std::min(all[1].size(), folder.size()));
  EXPECT_TRUE(all[1].starts_with(folder)) << all[1];
  EXPECT_EQ(name.size(), 16 + std::string(".packed").size()) << name;
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), 16u) << name;
  EXPECT_TRUE(name.ends_with(".packed")) << name;
  // The cache has one place for a file, however it is named, and another one for another file.
  EXPECT_EQ(places("/models/sub/../a.gguf")[1], all[1]);
  const std::string here = test::temporary_path("a.gguf");
  ASSERT_TRUE(write_file(here, "a model"));
  EXPECT_EQ(places(fs::relative(here))[1], places(here)[1]);
  EXPECT_NE(places("/models/b.gguf")[1], all[1]);
  environment.set("XDG_CACHE_HOME", nullptr);
  environment.set("HOME", "relative");
  EXPECT_EQ(places("/models/a.gguf"), std::vector<std::string>{"/models/a.gguf.packed"});
}

TEST(PackedPlaces, WhereNothingCanBePacked) {
  EngineOptions options;
  options.backend = "cpu", options.threads = 1, options.verify = Verify::Never;
  options.run.context = 32, options.run.batch = options.run.logit_rows = 8;
  gimbal::Engine engine(backend_registry(), options, [](const Event&) { return true; });
  const auto error_of = [&](const std::string& model, bool in_cache) {
    const auto file = open_model_file(model);
    EXPECT_TRUE(file) << file.error().message;
    const auto loaded = engine.load(*file);
    EXPECT_TRUE(loaded) << loaded.error().message;
    const auto path = pack_weights((*loaded)->source, (*loaded)->model->plan(), in_cache);
    EXPECT_FALSE(path);
    return path ? Error{} : path.error();
  };
  const Error inside = error_of("", false);
  EXPECT_EQ(inside.code, Code::Usage);
  EXPECT_EQ(inside.message, "the model inside the program is in memory with it: there is nothing to pack");
  Environment environment;
  environment.set("XDG_CACHE_HOME", nullptr);
  environment.set("HOME", "relative");
  const std::string model = test::temporary_path("places.gguf");
  fs::copy_file(test::golden_dir() + "/arch/llama-gqa.gguf", model);
  const Error no_cache = error_of(model, true);
  EXPECT_EQ(no_cache.code, Code::Usage);
  EXPECT_EQ(no_cache.message,
            "there is no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path");
  environment.set("XDG_CACHE_HOME", (model + ".none/file").c_str());
  ASSERT_TRUE(write_file(model + ".none", "a file where a folder is wanted"));
  EXPECT_SAYS(error_of(model, true).message, model + ".none/file/gimbal/packed/");
  EXPECT_FALSE(fs::exists(model + ".packed")) << "nothing is written elsewhere";
  environment.set("XDG_CACHE_HOME", nullptr);
  const auto loaded = engine.load(*open_model_file(model));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto beside = pack_weights((*loaded)->source, (*loaded)->model->plan(), false);
  ASSERT_TRUE(beside) << "which needs no cache folder: " << beside.error().message;
  EXPECT_EQ(*beside, model + ".packed");
}

// Packing takes a weight at a time. `promised`: memory that others will take, here all of it.
TEST(PackedPlaces, AModelLargerThanMemoryIsPacked) {
  const std::string model = test::temporary_path("larger.gguf");
  fs::copy_file(test::golden_dir() + "/arch/llama-gqa.gguf", model, fs::copy_options::overwrite_existing);
  fs::remove(model + ".packed");
  EngineOptions options;
  options.backend = "cpu", options.threads = 2, options.verify = Verify::Never;
  options.run.context = 32, options.run.batch = options.run.logit_rows = 8;
  options.run.promised = uint64_t(1) << 50;
  gimbal::Engine engine(backend_registry(), options, [](const Event&) { return true; });
  const auto file = open_model_file(model);
  ASSERT_TRUE(file) << file.error().message;
  const auto loaded = engine.load(*file);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::OutOfMemory);
  const auto planned = engine.plan_measured(*file);
  ASSERT_TRUE(planned) << planned.error().message;
  const uint64_t weights = planned->plan.last().memory.weights;

  uint64_t calls = 0;
  const auto stopped =
      pack_weights(planned->source, planned->plan, false, [&](uint64_t, uint64_t) { return ++calls < 3; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "packing was cancelled");
  EXPECT_EQ(calls, 3u);
  EXPECT_FALSE(fs::exists(model + ".packed"));

  uint64_t last = 0;
  const auto packed = pack_weights(planned->source, planned->plan, false, [&](uint64_t done, uint64_t total) {
    EXPECT_TRUE(last < done && done <= total && total <= weights);
    return last = done, true;
  });
  ASSERT_TRUE(packed) << packed.error().message;

  engine.run().promised = 0;
  const auto mapped = engine.load(*file);
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_TRUE((*mapped)->model->plan().stages[0].packed);
  options.packed = Packed::Off, options.run.promised = 0;
  gimbal::Engine other(backend_registry(), options, [](const Event&) { return true; });
  const auto read = other.load(*file);
  ASSERT_TRUE(read) << read.error().message;
  const auto logits = [](const LoadedModelPtr& m) {
    return test::logits_of(*m->model, test::any_tokens(20, m->model->config().vocabulary), 8);
  };
  EXPECT_EQ(test::bits_differ(logits(*mapped), logits(*read)), "");
}

// A file that was found intact is not read again while its name, inode, size and times are the same. Here the
// cache says so of a damaged file.
TEST(PackedPlaces, AFileIsReadOnceOrAlways) {
  Environment environment;
  const std::string model = test::temporary_path("once.gguf"), cache = test::temporary_path("once-cache");
  environment.set("XDG_CACHE_HOME", cache.c_str());
  fs::copy_file(test::golden_dir() + "/arch/llama-gqa.gguf", model, fs::copy_options::overwrite_existing);
  EngineOptions options;
  options.backend = "cpu", options.threads = 1, options.verify = Verify::Never;
  options.run.context = 32, options.run.batch = options.run.logit_rows = 8;
  gimbal::Engine engine(backend_registry(), options, [](const Event&) { return true; });
  const auto loaded = engine.load(*open_model_file(model));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto path = pack_weights((*loaded)->source, (*loaded)->model->plan(), false);
  ASSERT_TRUE(path) << path.error().message;
  std::string bytes = *read_file(*path);
  bytes[bytes.size() - 70] = char(bytes[bytes.size() - 70] ^ 1);
  ASSERT_TRUE(write_file(*path, bytes));
  const auto damaged = PackedFile::open(*path, (*loaded)->source.file->reader().identity());
  ASSERT_TRUE(damaged) << damaged.error().message;
  EXPECT_FALSE(check_once(**damaged, false));
  const std::string list = cache + "/gimbal/packed.json";
  Json j = parse_json(*read_file(list));
  ASSERT_EQ(j["packed"].size(), 1u);
  Json& key = j["packed"][0]["key"];
  const InputFile::State& now = (*damaged)->state();
  key["inode"] = now.inode, key["modified"] = now.modified, key["changed"] = now.changed;
  ASSERT_TRUE(replace_file(list, j.dump()));
  EXPECT_TRUE(check_once(**damaged, false)) << "the cache says that it is intact";
  EXPECT_FALSE(check_once(**damaged, true));
  for (const char* part : {"inode", "modified", "changed", "bytes", "device"}) {
    Json other = j;
    other["packed"][0]["key"][part] = key[part].get<int64_t>() + 1;
    ASSERT_TRUE(replace_file(list, other.dump()));
    EXPECT_FALSE(check_once(**damaged, false)) << part;
  }
}

}  // namespace
}  // namespace gimbal
