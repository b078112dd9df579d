// How many layers fit on a device, and the error when a model does not: the suggested numbers
// hold.
#include <gtest/gtest.h>

#include <cstdio>

#include "runtime/memory_check.h"
#include "runtime/stages.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

class Fit : public testing::Test {
 protected:
  const ModelSource file_ = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const int layers_ = configure(file_)->layers;
  std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1");

  static RunOptions options(int context = 512) {
    RunOptions o;
    o.context = context, o.batch = 32;
    return o;
  }
  static std::unique_ptr<Device> with_memory(uint64_t bytes) {
    return open_one("emulator", 0, "memory=" + std::to_string(bytes));
  }
  uint64_t bytes_of(int layers, const RunOptions& o) {
    const auto gpu = open_one("emulator");
    const auto b = make_model_plan(
        file_, std::vector<Placement>{{cpu_.get(), layers_ - layers, ""}, {gpu.get(), layers, ""}}, o);
    return b->last().memory.total();
  }
  uint64_t bytes_of_all(const RunOptions& o) {
    const auto gpu = open_one("emulator");
    return make_model_plan(file_, *gpu, o)->last().memory.total();
  }
};

TEST_F(Fit, TakesAsManyLayersAsFit) {
  for (int layers = 0; layers <= layers_; layers++)
    for (int64_t more : {0, -1}) {
      const uint64_t memory = bytes_of(layers, options()) + uint64_t(more);
      const auto gpu = with_memory(memory);
      const auto fit = layers_that_fit(file_, *gpu, options());
      ASSERT_TRUE(fit);
      EXPECT_EQ(*fit, std::max(0, layers + int(more))) << "with room for " << layers << " layers";
      auto b = place_layers(file_, *gpu, *cpu_, kAsManyAsFit, options());
      ASSERT_TRUE(b) << b.error().message;
      EXPECT_TRUE(check_memory(file_, *b));
      if (memory >= bytes_of_all(options())) {
        EXPECT_FALSE(b->split()) << "the table is the output head, too: leaving it out saves nothing";
        EXPECT_EQ(&b->device(), gpu.get());
      } else if (*fit == 0) {
        EXPECT_FALSE(b->split());
        EXPECT_EQ(&b->device(), cpu_.get());
        EXPECT_NE(b->stages[0].why.find("not even one layer"), std::string::npos) << b->stages[0].why;
      } else {
        ASSERT_EQ(b->stages.size(), 2u);
        EXPECT_EQ(b->stages[0].device, cpu_.get());
        EXPECT_TRUE(b->stages[0].embedding && b->stages[1].head && !b->stages[1].embedding);
        EXPECT_EQ(b->last().layers, *fit);
        EXPECT_NE(b->last().why.find("as many layers as fit"), std::string::npos) << b->last().why;
        EXPECT_NE(b->stages[0].why.find("the whole model takes "), std::string::npos) << b->stages[0].why;
      }
    }
  const auto gpu = with_memory(bytes_of_all(options()));
  auto b = place_layers(file_, *gpu, *cpu_, kAsManyAsFit, options());
  ASSERT_TRUE(b);
  EXPECT_FALSE(b->split()) << "all of it fits, the embedding, too";
  EXPECT_EQ(&b->device(), gpu.get());
}

TEST_F(Fit, PutsTheLayersWhereTheyWereAskedFor) {
  const auto gpu = open_one("emulator");
  for (int layers = 0; layers <= layers_ + 1; layers++) {
    auto b = place_layers(file_, *gpu, *cpu_, layers, options());
    ASSERT_TRUE(b) << b.error().message;
    const bool split = layers > 0 && layers < layers_;
    ASSERT_EQ(b->split(), split) << layers;
    EXPECT_EQ(&b->device(), layers ? gpu.get() : cpu_.get());
    EXPECT_EQ(b->last().layers, split ? layers : layers_);
    if (split) {
      EXPECT_EQ(b->stages[0].first_layer, 0);
      EXPECT_EQ(b->last().first_layer, layers_ - layers) << "the last layers are on the GPU";
    }
    for (const Stage& p : b->stages) EXPECT_FALSE(p.why.empty());
  }
  auto b = *place_layers(file_, *gpu, *cpu_, layers_ - 1, options());
  EXPECT_EQ(contents(b.stages[0]), "the embedding and layer 0");
  EXPECT_EQ(contents(b.stages[1]), "layers 1 to 4 and the output head");
}

TEST_F(Fit, SuggestsFewerLayersThatFit) {
  const auto gpu = with_memory(bytes_of(3, options()));
  auto b = place_layers(file_, *gpu, *cpu_, layers_, options());
  ASSERT_TRUE(b);
  auto no = check_memory(file_, *b);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  EXPECT_NE(no.error().message.find("not enough memory on emulator:0"), std::string::npos)
      << no.error().message;
  EXPECT_NE(no.error().message.find(human_bytes(bytes_of_all(options())) + " needed"), std::string::npos)
      << no.error().message;
  int layers = 0;
  ASSERT_FALSE(no.error().changes.empty()) << no.error().message;
  EXPECT_STREQ(no.error().changes[0].field, "gpu_layers");
  EXPECT_NE(no.error().changes[0].effect.find("would fit"), std::string::npos)
      << no.error().changes[0].effect;
  layers = std::atoi(no.error().changes[0].value.c_str());
  EXPECT_EQ(layers, 3);
  EXPECT_NE(no.error().remedy.find("another device"), std::string::npos) << no.error().remedy;
  EXPECT_TRUE(check_memory(file_, *place_layers(file_, *gpu, *cpu_, layers, options())));
  EXPECT_FALSE(check_memory(file_, *place_layers(file_, *gpu, *cpu_, layers + 1, options())));
  // Refused before anything is read, with the same words.
  auto load = Model::load(std::move(*b), file_);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().message, no.error().message);
}

TEST_F(Fit, SuggestsAContextThatFits) {
  const RunOptions large = options(4096);
  const auto gpu = with_memory(bytes_of(3, options(1024)));
  auto b = place_layers(file_, *gpu, *cpu_, 3, large);
  ASSERT_TRUE(b);
  auto no = check_memory(file_, *b);
  ASSERT_FALSE(no);
  EXPECT_NE(no.error().message.find("layers 2 to 4 and the output head"), std::string::npos)
      << no.error().message;
  int context = 0;
  for (const Change& c : no.error().changes)
    if (c.field == std::string("context")) context = std::atoi(c.value.c_str());
  EXPECT_GE(context, 1024 - 2 * kPagePositions);
  EXPECT_LT(context, 1200);
  EXPECT_TRUE(check_memory(file_, *place_layers(file_, *gpu, *cpu_, 3, options(context))));
  EXPECT_FALSE(
      check_memory(file_, *place_layers(file_, *gpu, *cpu_, 3, options(context + 2 * kPagePositions))));
}

TEST_F(Fit, CountsTwoPartsOnOneDeviceTogether) {
  const auto gpu = open_one("emulator");
  const std::vector<Placement> where = {
      {gpu.get(), 2, ""}, {cpu_.get(), 1, ""}, {gpu.get(), layers_ - 3, ""}};
  auto b = make_model_plan(file_, where, options());
  ASSERT_TRUE(b);
  const auto uses = memory_uses(*b);
  ASSERT_EQ(uses.size(), 3u) << "two devices, and the memory of the host that both use";
  EXPECT_EQ(uses[2].sum.sessions, b->host_bytes());
  EXPECT_EQ(uses[0].sum.total(), b->stages[0].memory.total() + b->stages[2].memory.total());
  EXPECT_EQ(uses[1].sum.total(), b->stages[1].memory.total());
  EXPECT_EQ(uses[2].device, nullptr);
  EXPECT_EQ(uses[2].sum.total(), uses[0].sum.total() + uses[1].sum.total() + uses[2].sum.sessions);
  EXPECT_GT(uses[2].sum.free, 0u);
  // Each part fits, both do not.
  for (Stage& p : b->stages)
    if (p.device == gpu.get()) p.memory.free = uses[0].sum.total() - 1;
  auto no = check_memory(file_, *b);
  ASSERT_FALSE(no);
  EXPECT_NE(no.error().message.find("emulator:0"), std::string::npos) << no.error().message;
}

}  // namespace
}  // namespace gimbal::test
