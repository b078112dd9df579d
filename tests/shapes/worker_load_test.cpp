// load(path) for the CPU, load(path, gpu) for the others: the wrong one does not exist; and what loading says
// when there is nothing to load on.
#include <gtest/gtest.h>

#include "apps/worker/engine.h"
#include "device/backends.h"
#include "runtime/generate.h"
#include "support/cli.h"

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
  Engine<Backend>::load(path, a...);
};

static_assert(Loads<Cpu>);
static_assert(!Loads<Cpu, int>);
static_assert(Loads<Cpu, Settings>);
static_assert(!Loads<Cpu, int, Settings>);
static_assert(Loads<Gpus<3>, int>);
static_assert(!Loads<Gpus<3>>);
static_assert(Loads<Gpus<3>, int, Settings>);
static_assert(!Loads<Gpus<3>, Settings>);

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
  auto cpu = Engine<Cpu>::load(test::story_file("f32"));
  ASSERT_TRUE(cpu) << cpu.error().message;
  auto gpu = Engine<Gpus<3>>::load(test::story_file("f32"), 2);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(story(cpu->model(), cpu->tokenizer()), story(gpu->model(), gpu->tokenizer()));
  auto session = Session::create(cpu->model());
  ASSERT_TRUE(session) << session.error().message;
  GenerateSettings settings;
  settings.sampler.greedy = true;
  const auto prompt = reference["tokens"].get<std::vector<Token>>();
  const auto expected = reference["greedy"].get<std::vector<Token>>();
  settings.max_tokens = int(expected.size());
  auto g =
      generate(**session, cpu->tokenizer(), prompt, settings, [](std::string_view, Token) { return true; });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->tokens, expected);
}

TEST(WorkerLoad, ANumberThatNoGpuHasNamesThoseThatThereAre) {
  for (int index : {3, 7, -1}) {
    auto engine = Engine<Gpus<3>>::load(test::story_file("f32"), index);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, Code::NoBackend);
    EXPECT_SAYS(engine.error().message, format("device {}", index));
    EXPECT_SAYS(engine.error().message, "found 3 (0: ");
    EXPECT_SAYS(engine.error().message, ", 2: ");
  }
}

TEST(WorkerLoad, WithoutAGpuTheReasonAndTheRemedyAreTheDriversOwn) {
  auto engine = Engine<Gpus<0>>::load(test::story_file("f32"), 0);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::NoBackend);
  EXPECT_SAYS(engine.error().message, "the driver is not installed");
  EXPECT_EQ(engine.error().remedy, "install it");
}

TEST(WorkerLoad, AFileThatIsNotThere) {
  auto engine = Engine<Cpu>::load("/nonexistent/model.gguf");
  ASSERT_FALSE(engine);
  EXPECT_SAYS(engine.error().message, "/nonexistent/model.gguf");
}

}  // namespace
}  // namespace gimbal::worker
