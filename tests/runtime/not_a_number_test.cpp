// "The right answer or an error, never garbage": a weight that is not a number must still be visible in the
// logits, where the sampler refuses it, whichever tensor it is in.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "files/gguf.h"
#include "runtime/sampler.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

// The logits after a few tokens of a file held in memory.
std::vector<float> logits_of(const std::string& bytes, const std::string& variant) {
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "broken.gguf");
  auto device = open_device({"cpu", 0, true, "threads=1\nvariant=" + variant});
  EXPECT_TRUE(file && device);
  RunOptions o;
  o.context = 64, o.batch = 8;
  auto plan = make_model_plan(*file, *device->device, o);
  EXPECT_TRUE(plan) << plan.error().message;
  auto model = Model::load(std::move(*plan), *file);
  EXPECT_TRUE(model) << model.error().message;
  auto session = *Session::create(**model);
  const std::vector<int32_t> tokens = {1, 403, 407, 261};
  std::vector<float> out;
  auto ok = session->advance(tokens, Session::Wanted::Last,
                             [&](size_t, std::span<const float> row) { out.assign(row.begin(), row.end()); });
  EXPECT_TRUE(ok) << ok.error().message;
  return out;
}

TEST(NotANumber, InAnyTensorReachesTheSampler) {
  // Squared ReLU and the other norms are in the third.
  for (const char* model :
       {"stories/stories260K-f32.gguf", "stories/stories260K-q8_0.gguf", "arch/bitnet-b158-f32.gguf"}) {
    const std::string path = golden_dir() + "/" + model;
    const std::string good = *read_file(path);
    auto file = open_gguf(path);
    ASSERT_TRUE(file);
    for (const std::string& variant : cpu_variants().usable)
      for (const StoredTensor& t : file->tensors()) {
        std::string bad = good;
        // A half or a float of all ones is a NaN; q8_0 blocks begin with their scale.
        const size_t step = t.type == DType::Q8_0 ? 34 : size_t(info(t.type).bytes);
        const size_t size = t.type == DType::Q8_0 ? 2 : step;
        ASSERT_TRUE(t.type == DType::Q8_0 || info(t.type).block == 1);
        for (size_t i = 0; i < t.bytes; i += step) std::memset(&bad[t.offset + i], 0xff, size);
        const std::vector<float> logits = logits_of(bad, variant);
        Sampler sampler(SamplerSettings{});
        EXPECT_FALSE(sampler.pick(logits, {}))
            << model << ", " << variant << ": NaN in " << t.name << " was lost";
      }
  }
}

}  // namespace
}  // namespace gimbal::test
