// Models whose indexer chooses the positions that a row attends to: the bits of a text depend neither on
// batches nor on the context, also where the context decides whether there is an indexer at all.
// peer_architectures_test compares the logits with llama.cpp's.
#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/peer_golden.h"
#include "support/placed.h"
#include "support/plain_weights.h"

namespace gimbal::test {
namespace {

std::vector<float> computed(const char* golden, int context, int batch, DType cache = DType::F16) {
  const std::string bytes = plain_model(peer_golden(golden));
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  EXPECT_TRUE(file) << file.error().message;
  const auto device = open_one("cpu", 0, "threads=2");
  RunOptions o;
  o.context = context, o.batch = o.logit_rows = batch, o.cache_type = cache;
  const auto model = load_on(*device, *file, o);
  return model ? logits_of(*model, any_tokens(150, 500)) : std::vector<float>();
}

TEST(Indexer, BatchesChangeNoBits) {
  for (const char* golden : {"deepseek32-chosen", "glm-dsa-chosen"}) {
    const auto want = computed(golden, 200, 1);
    ASSERT_FALSE(want.empty());
    for (int batch : {7, 64, 150}) EXPECT_EQ(bits_differ(want, computed(golden, 200, batch)), "") << golden;
  }
}

// Of these 256 positions are chosen: in a context of 256 there is no indexer, in a larger one it chooses all.
TEST(Indexer, TheContextChangesNoBits) {
  for (const char* golden : {"deepseek32", "glm-dsa"})
    EXPECT_EQ(bits_differ(computed(golden, 256, 16), computed(golden, 300, 16)), "") << golden;
  EXPECT_EQ(bits_differ(computed("deepseek32-chosen", 160, 16), computed("deepseek32-chosen", 700, 16)), "");
}

// The first layer must have an indexer, as later ones may take its choice.
TEST(Indexer, ALayerNeedsAChoice) {
  auto golden = peer_golden("glm-dsa-chosen");
  golden["metadata"]["glm-dsa.attention.indexer.types"] = {0, 0, 1};
  const std::string bytes = plain_model(golden);
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto device = open_one("cpu", 0, "threads=1");
  RunOptions o;
  o.context = 64;
  const auto plan = make_model_plan(*file, *device, o);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("the first layer has no indexer"), std::string::npos)
      << plan.error().message;
}

}  // namespace
}  // namespace gimbal::test
