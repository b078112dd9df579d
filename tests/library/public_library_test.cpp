// The public classes, as a program of another project uses them (tests/shapes/consumer is one that is
// installed).
#include <gimbal/engine.h>
#include <gimbal/memory.h>
#include <gtest/gtest.h>

#include "support/fake_plugins.h"

namespace {

using namespace gimbal;
using test::PluginFolder;

// A fake card of 8 GB, of which 6 are free, beside the CPU; nothing of this machine is found.
Options with(const PluginFolder& folder) {
  setenv("GIMBAL_BACKEND_PATH", "", 1);
  setenv("XDG_CACHE_HOME", (folder.path() + "/cache").c_str(), 1);
  Options o;
  o.plugin_folders = {folder.path()};
  o.threads = 1, o.numerics = Numerics::Fast;
  return o;
}
constexpr const char* kCard = "hardware,device=Fake card,memory=8000000000,free=6000000000";

TEST(PublicLibrary, TheBestDeviceIsTheFirstThatFits) {
  PluginFolder folder;
  folder.put("vulkan", kCard);
  Options o = with(folder);
  Engine engine(o);
  auto best = engine.best_device();
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_EQ(best->id, "vulkan:0");
  EXPECT_EQ(best->name, "Fake card");
  EXPECT_EQ(best->memory_free, 6'000'000'000u);
  EXPECT_EQ(engine.best_device(5'000'000'000)->id, "vulkan:0");
  EXPECT_EQ(engine.best_device(7'000'000'000)->backend, "cpu");
  auto none = engine.best_device(uint64_t(1) << 60);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::OutOfMemory);
  EXPECT_NE(none.error().message.find("6.00 GB"), std::string::npos) << none.error().message;

  o.backend = "metal";
  EXPECT_EQ(Engine(o).best_device()->id, "vulkan:0") << "the next best";
  o.strict = true;
  auto strict = Engine(o).best_device();
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, Code::NoBackend);
  EXPECT_EQ(strict.error().reason, "not-built");
  EXPECT_EQ(strict.error().message.find("cuda"), std::string::npos) << "it was not requested";
}

TEST(PublicLibrary, TheSummaryHasEveryBackend) {
  PluginFolder folder;
  folder.put("vulkan", std::string(kCard) + ",pci=0000:01:00.0,driver=7.1,capability=3.5");
  folder.put("cuda", "devices=0,says=no card/buy one"), folder.put("opencl", "unified,pci=0000:01:00.0");
  const std::string text = Engine(with(folder)).summary();
  for (const char* part :
       {"=== Available Backends ===\n\u2717 CUDA (cuda)\n    Error: no device found: no card (no-device)\n   "
        "   buy "
        "one\n",
        "\u2713 Vulkan (vulkan)\n    [0] Fake card: 8.00 GB (6.00 GB free), compute capability 3.5, driver "
        "7.1, PCI "
        "0000:01:00.0\n",
        "\u2713 CPU (cpu)\n    [0] ", "(unified memory) (software: emulates a GPU on the CPU)",
        "the same card as vulkan:0", "\nRecommended backend: Vulkan (vulkan:0)\n", "plugin: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin:\n" << text;
}

// The example of the requirements: Mistral 7B, of which 7,241,732,096 parameters are known.
TEST(PublicLibrary, MemoryIsEstimatedFromDimensions) {
  ModelShape s;
  s.width = 4096, s.ff_width = 14336, s.layers = 32, s.vocabulary = 32000, s.heads = 32, s.kv_heads = 8;
  s.weights = "f16";
  auto e = estimate_memory(s);
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_NEAR(double(e->weights), 2 * 7241732096.0, 2e6) << "norms take 4 bytes";
  EXPECT_EQ(e->cache, uint64_t(32) * 2 * 4096 * 8 * 128 * 2)
      << "layers, K and V, positions, heads, width, bytes";
  EXPECT_DOUBLE_EQ(e->total_gb(), double(e->total_bytes()) / 1e9);
  EXPECT_EQ(e->total_bytes(), e->weights + e->cache + e->activations + e->step + e->output);
  s.weights = "q9_9";
  EXPECT_EQ(estimate_memory(s).error().field, "weights");
  s.weights = "q4_0", s.layers = -1;
  auto negative = estimate_memory(s);
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().field, "layers");
  EXPECT_EQ(negative.error().value, "-1");
}

// The same model in q4_0, beside a card with much and with little free memory.
TEST(PublicLibrary, APlacementOffersTheLayersThatFit) {
  ModelShape s;
  s.width = 4096, s.ff_width = 14336, s.layers = 32, s.vocabulary = 32000, s.heads = 32, s.kv_heads = 8;
  s.context = 2048;
  const auto with_free = [&](const std::string& free, const ModelShape& shape) {
    PluginFolder folder;
    folder.put("vulkan", "hardware,device=Fake card,memory=8000000000,free=" + free);
    return Engine(with(folder)).best_placement(shape);
  };
  auto whole = with_free("6000000000", s);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(whole->size(), 1u);
  EXPECT_EQ((*whole)[0].device, "vulkan:0");
  EXPECT_EQ((*whole)[0].layers, 32);
  EXPECT_TRUE((*whole)[0].embedding && (*whole)[0].head);
  EXPECT_NE((*whole)[0].why, "");

  // Room for all or twenty layers and the output head, to the byte, and a byte less.
  const auto bytes_of = [&](int layers) {
    ModelShape there = s;
    there.tied_output = true, there.layers = layers;  // one table
    return estimate_memory(there)->total_bytes();
  };
  for (const auto& [free, layers] : {std::pair(bytes_of(32), 32), std::pair(bytes_of(32) - 1, 31),
                                     std::pair(bytes_of(20), 20), std::pair(bytes_of(20) - 1, 19)}) {
    auto part = with_free(std::to_string(free), s);
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_EQ(part->size(), 2u);
    const Placement &cpu = (*part)[0], &gpu = (*part)[1];
    EXPECT_EQ(cpu.device, "cpu:0");
    EXPECT_TRUE(cpu.embedding && !cpu.head && !gpu.embedding && gpu.head);
    EXPECT_EQ(cpu.first_layer, 0);
    EXPECT_EQ(cpu.layers, 32 - layers);
    EXPECT_EQ(gpu.first_layer, 32 - layers);
    EXPECT_EQ(gpu.layers, layers);
    EXPECT_NE(gpu.why.find(std::to_string(layers) + " of 32 layers fit"), std::string::npos) << gpu.why;
  }

  // Less than a layer and the head: the CPU takes all. More than any machine has: an error with the numbers.
  auto none = with_free("50000000", s);
  ASSERT_TRUE(none) << none.error().message;
  ASSERT_EQ(none->size(), 1u);
  EXPECT_EQ((*none)[0].device, "cpu:0");
  s.layers = 1 << 24;
  auto never = with_free("6000000000", s);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::OutOfMemory);
  s.weights = "q9_9";
  EXPECT_EQ(with_free("6000000000", s).error().field, "weights");
}

TEST(PublicLibrary, ABackendIsReplacedWhileAModelRuns) {
  PluginFolder folder, next;
  folder.put("metal", "hardware");
  const std::string plugin = next.put("metal_next", "named=metal,hardware", "v2");
  Options o = with(folder);
  o.backend = "metal", o.strict = true;
  int verified = 0;
  o.events = [&](const Event& e) { return verified += e.kind == Event::Verifying, true; };
  Engine engine(o);
  auto model = engine.load("default");
  ASSERT_TRUE(model) << model.error().message;
  auto sequence = model->new_sequence();
  ASSERT_TRUE(sequence);
  TextOptions greedy;
  greedy.greedy = true, greedy.max_tokens = 8;
  auto tell = [&](Sequence& s) {
    std::string text;
    auto told = s.generate("Once upon a time", greedy, [&](std::string_view t) { return text += t, true; });
    EXPECT_TRUE(told) << told.error().message;
    return text;
  };
  const std::string before = tell(*sequence);
  verified = 0;
  auto r = engine.reload_backend(plugin);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->backend, "metal");
  EXPECT_EQ(r->before.plugin, folder.file("metal"));
  EXPECT_EQ(r->now.plugin, plugin);
  EXPECT_NE(r->before.build, r->now.build);
  EXPECT_TRUE(r->draining);
  EXPECT_GT(verified, 0);
  sequence->rewind(0);
  EXPECT_EQ(tell(*sequence), before) << "on the code before";
  auto fresh = engine.load("default");
  ASSERT_TRUE(fresh) << fresh.error().message;
  auto second = fresh->new_sequence();
  ASSERT_TRUE(second);
  EXPECT_EQ(tell(*second), before);
  auto bad = engine.reload_backend("/there/is/nothing.so");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, "plugin-missing");
  EXPECT_EQ(bad.error().code, Code::NoBackend);
}

TEST(PublicLibrary, TextsBecomeEmbeddings) {
  PluginFolder folder;
  Engine engine(with(folder));
  ModelOptions options;
  options.embed = true, options.cache_type = "f32", options.sequences = 2;
  auto model = engine.load("default", options);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<std::string> texts = {"Once upon a time", "The dog ran", "Once upon a time"};
  EXPECT_EQ(model->embed(texts).error().field, "pooling") << "the file says nothing";
  auto e = model->embed(texts, Pooling::Mean);
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_EQ(e->size(), texts.size());
  double length = 0;
  for (float x : (*e)[0]) length += double(x) * x;
  EXPECT_NEAR(length, 1, 1e-6);
  EXPECT_EQ((*e)[0], (*e)[2]);
  EXPECT_NE((*e)[0], (*e)[1]);
  EXPECT_EQ(model->new_sequence().error().field, "embed");
  EXPECT_EQ(engine.load("default")->embed(texts, Pooling::Last).error().field, "embed");
}

TEST(PublicLibrary, DraftsChangeNoText) {
  PluginFolder folder;
  Engine engine(with(folder));
  TextOptions settings;
  settings.seed = 7, settings.max_tokens = 60;
  const char* prompt = "Tom saw a cat. Lily saw a cat. Tom saw a cat. Lily saw";
  std::string expected;
  for (const char* draft : {"", "off", "auto", "ngram", "default"}) {
    ModelOptions options;
    options.draft = draft;
    auto model = engine.load("default", options);
    ASSERT_TRUE(model) << model.error().message;
    auto sequence = model->new_sequence();
    ASSERT_TRUE(sequence) << sequence.error().message;
    auto told = sequence->generate(prompt, settings);
    ASSERT_TRUE(told) << told.error().message;
    if (expected.empty()) expected = told->text;
    EXPECT_EQ(told->text, expected) << draft;
    EXPECT_LE(told->accepted, told->drafted);
  }
  ModelOptions wrong;
  wrong.draft = "no-such-model";
  EXPECT_EQ(engine.load("default", wrong).error().field, "draft");
  wrong.draft = "ngram", wrong.embed = true;
  EXPECT_EQ(engine.load("default", wrong).error().field, "draft");
}

}  // namespace
