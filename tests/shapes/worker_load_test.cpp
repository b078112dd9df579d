// load(path) for the CPU, load(path, gpu) for the others: the wrong one does not exist; and what loading says
// when there is nothing to load on.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "apps/worker/load.h"
#include "base/file.h"
#include "device/backends.h"
#include "engine/packed.h"
#include "runtime/generate.h"
#include "support/cli.h"
#include "support/tiny_llama.h"

namespace gimbal::worker {
using test::contains;
namespace {

const gimbal_backend& cpu_table() {
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (std::string((*e)()->name) == "cpu") return *(*e)();
  std::abort();
}

struct Cpu {
  static constexpr bool kHasGpus = false;
  static const gimbal_backend& table() { return cpu_table(); }
};
// The CPU's table passed off as that of a backend with three numbered devices, or with none.
template <int kCount>
struct Gpus {
  static constexpr bool kHasGpus = true;
  static const gimbal_backend& table() {
    static const gimbal_backend t = [] {
      gimbal_backend b = cpu_table();
      b.device_count = [] { return kCount; };
      b.open = [](int index, const char* options, gimbal_device** out) {
        return kCount ? cpu_table().open(index * 0, options, out) : GIMBAL_UNSUPPORTED;
      };
      b.last_error = [](gimbal_device*) { return "the driver is not installed\ninstall it"; };
      return b;
    }();
    return t;
  }
};

template <class Backend, class... Arguments>
concept Loads = requires(std::string path, Arguments... a) {
  load<Backend>(path, a...);
};

static_assert(Loads<Cpu>);
static_assert(!Loads<Cpu, int>);
static_assert(Loads<Cpu, EngineOptions>);
static_assert(!Loads<Cpu, int, EngineOptions>);
static_assert(Loads<Gpus<3>, int>);
static_assert(!Loads<Gpus<3>>);
static_assert(Loads<Gpus<3>, int, EngineOptions>);
static_assert(!Loads<Gpus<3>, EngineOptions>);

std::string story(Model& model, const Tokenizer& tokenizer) {
  auto session = Session::create(model);
  if (!session) return session.error().message;
  GenerateSettings settings;
  settings.sampler.greedy = true;
  settings.max_tokens = 10;
  std::string text;
  auto g = generate(**session, tokenizer, tokenizer.encode("Once upon a time"), settings,
                    [&](std::string_view piece, Token) { return text += piece, true; });
  return g ? text : g.error().message;
}

TEST(WorkerLoad, TheTextIsThatOfTheReference) {
  const auto& reference = test::story();
  auto cpu = load<Cpu>(test::story_file("f32"));
  ASSERT_TRUE(cpu) << cpu.error().message;
  auto gpu = load<Gpus<3>>(test::story_file("f32"), 2);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(story(*cpu->on->model, *cpu->tokenizer), story(*gpu->on->model, *gpu->tokenizer));
  auto session = Session::create(*cpu->on->model);
  ASSERT_TRUE(session) << session.error().message;
  GenerateSettings settings;
  settings.sampler.greedy = true;
  const auto prompt = reference["tokens"].get<std::vector<Token>>();
  const auto expected = reference["greedy"].get<std::vector<Token>>();
  settings.max_tokens = int(expected.size());
  auto g =
      generate(**session, *cpu->tokenizer, prompt, settings, [](std::string_view, Token) { return true; });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->tokens, expected);
}

TEST(WorkerLoad, ANumberThatNoGpuHasNamesThoseThatThereAre) {
  for (int index : {3, 7, -1}) {
    auto engine = load<Gpus<3>>(test::story_file("f32"), index);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, Code::NoBackend);
    EXPECT_SAYS(engine.error().message, format("device {}", index));
    EXPECT_SAYS(engine.error().message, "found 3 (0: ");
    EXPECT_SAYS(engine.error().message, ", 2: ");
  }
}

TEST(WorkerLoad, WithoutAGpuTheReasonAndTheRemedyAreTheDriversOwn) {
  auto engine = load<Gpus<0>>(test::story_file("f32"), 0);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::NoBackend);
  EXPECT_SAYS(engine.error().message, "the driver is not installed");
  EXPECT_EQ(engine.error().remedy, "install it");
}

TEST(WorkerLoad, PackedWeightsAreTaken) {
  const std::string file = test::temporary_path("packed-in-worker.gguf");
  std::filesystem::copy_file(test::story_file("q8_0"), file,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(file + ".packed");
  auto first = load<Cpu>(file);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->on->model->plan().stages[0].packed);
  ASSERT_TRUE(pack_weights(first->on->source, first->on->model->plan(), false));
  auto again = load<Cpu>(file);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->on->model->plan().stages[0].packed);
  EXPECT_EQ(story(*again->on->model, *again->tokenizer), story(*first->on->model, *first->tokenizer));
}

// A llama whose products are worth measuring, and large enough a vocabulary for a tokenizer.
std::string wide_model() {
  test::TinyLlama m;
  m.u32("embedding_length", 1024), m.u32("feed_forward_length", 1024);
  m.u32("attention.head_count", 8), m.u32("attention.head_count_kv", 8);
  for (auto& [name, t] : m.tensors) {
    for (uint64_t& d : t.dims) d = d == 5 ? 5 : 1024;
    if (t.dims.size() == 2) t.type = 30;
  }
  std::string texts = test::le<uint32_t>(test::kString) + test::le<uint64_t>(5);
  std::string scores = test::le<uint32_t>(test::kF32) + test::le<uint64_t>(5);
  std::string types = test::le<uint32_t>(test::kI32) + test::le<uint64_t>(5);
  for (const auto& [text, type] : std::vector<std::pair<const char*, int32_t>>{
           {"<unk>", 2}, {"<s>", 3}, {"</s>", 3}, {"a", 1}, {"b", 1}})
    texts += test::gguf_string(text), scores += test::le(-1.f), types += test::le(type);
  m.text("tokenizer.ggml.model", "llama");
  m.keys["tokenizer.ggml.tokens"] = {test::kArray, texts};
  m.keys["tokenizer.ggml.scores"] = {test::kArray, scores};
  m.keys["tokenizer.ggml.token_type"] = {test::kArray, types};
  const std::string file = test::temporary_path("wide.gguf");
  EXPECT_TRUE(write_file(file, m.build()));
  return file;
}

TEST(WorkerLoad, ProductsAreMeasuredAtTheFirstUse) {
  const std::string cache = test::temporary_path("worker-cache"), file = wide_model();
  std::filesystem::remove_all(cache);
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EngineOptions options;
  options.threads = 2, options.run.context = 128;
  for (const bool first : {true, false}) {
    bool measuring = false;
    auto loaded = load<Cpu>(file, options, [&](const Event& e) {
      const auto* p = std::get_if<event::Progress>(&e);
      measuring |= p && p->stage == event::Progress::Measuring;
      return true;
    });
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(measuring, first) << "kept for the next start";
    EXPECT_FALSE(loaded->on->model->plan().options.kernels.measured.empty());
  }
}

TEST(WorkerLoad, AFileThatIsNotThere) {
  auto engine = load<Cpu>("/nonexistent/model.gguf");
  ASSERT_FALSE(engine);
  EXPECT_SAYS(engine.error().message, "/nonexistent/model.gguf");
}

}  // namespace
}  // namespace gimbal::worker
