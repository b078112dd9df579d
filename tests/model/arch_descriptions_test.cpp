// Files of encoders and recurrent models that are changed in one way each and must be refused: keys and
// tensors of tests/data/peer/architectures.
#include <gtest/gtest.h>

#include <functional>

#include "support/golden.h"
#include "support/plain_weights.h"
#include "support/refused.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

Json description(const std::string& name) {
  return read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/architectures/" + name + ".json");
}

std::optional<Error> plan_of(const std::string& bytes) {
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  if (!file) return file.error();
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!device) return device.error();
  RunOptions options;
  options.context = 64;
  auto planned = make_model_plan(*file, *device->device, options);
  if (!planned) return planned.error();
  return std::nullopt;
}

Json& tensor_of(Json& model, const std::string& name) {
  for (Json& t : model["tensors"])
    if (t[0] == name) return t;
  ADD_FAILURE() << name << " is not in the description";
  return model["tensors"][0];
}
void drop(Json& model, const std::string& name) { tensor_of(model, name)[0] = "another.weight"; }

struct Changed {
  const char *about, *model;
  std::function<void(Json&)> change;
  Code code;
  std::vector<const char*> words;
};

TEST(ArchDescriptions, AreTakenAsTheyAre) {
  for (const char* name :
       {"t5encoder", "jina-bert-v2-code", "nomic-bert-moe", "rwkv6-parts", "rwkv6qwen2", "rwkv7"}) {
    const auto e = plan_of(plain_model(description(name)));
    EXPECT_FALSE(e) << name << ": " << e->message;
  }
}

TEST(ArchDescriptions, AreRefusedWhenChanged) {
  auto number = [](const char* key, int n) { return [=](Json& m) { m["metadata"][key] = n; }; };
  auto dims = [](const char* name, std::vector<int> dims) {
    return [=](Json& m) { tensor_of(m, name)[1] = dims; };
  };
  const std::vector<Changed> all = {
      {"an odd number of buckets",
       "t5encoder",
       number("t5encoder.attention.relative_buckets_count", 31),
       Code::Unsupported,
       {"relative_buckets_count is 31", "4 to 510"}},
      {"more buckets than distances",
       "t5encoder",
       number("t5encoder.attention.relative_buckets_count", 512),
       Code::Unsupported,
       {"512"}},
      {"biases for other heads",
       "t5encoder",
       dims("enc.blk.0.attn_rel_b.weight", {5, 32}),
       Code::Malformed,
       {"attn_rel_b", "requires 4 x 32"}},
      {"biases that are missing",
       "t5encoder",
       [](Json& m) { drop(m, "enc.blk.0.attn_rel_b.weight"); },
       Code::Malformed,
       {"enc.blk.0.attn_rel_b.weight", "missing"}},
      {"biases that are no numbers",
       "t5encoder",
       [](Json& m) { tensor_of(m, "enc.blk.0.attn_rel_b.weight")[3] = 1e300; },
       Code::Malformed,
       {"attn_rel_b", "no finite number"}},
      {"an encoder with a mask",
       "t5encoder",
       [](Json& m) { m["metadata"]["t5encoder.attention.causal"] = true; },
       Code::Unsupported,
       {"causal"}},
      {"a head size that does not divide the width",
       "rwkv7",
       number("rwkv7.wkv.head_size", 48),
       Code::Malformed,
       {"not a multiple of wkv.head_size 48"}},
      {"five mixtures where the gate needs six",
       "rwkv7",
       dims("blk.0.time_mix_lerp_fused.weight", {128, 1, 1, 5}),
       Code::Malformed,
       {"time_mix_lerp_fused", "128 x 5", "128 x 6"}},
      {"factors for other heads",
       "rwkv6",
       dims("blk.1.time_mix_first.weight", {64, 3}),
       Code::Malformed,
       {"time_mix_first", "64 values for each of 2 heads"}},
      {"heads that keys cannot be shared by",
       "rwkv6qwen2",
       number("rwkv6qwen2.attention.head_count_kv", 2),
       Code::Malformed,
       {"head_count_kv 2", "3 heads"}},
      {"a tensor of another architecture",
       "rwkv7",
       [](Json& m) {
         m["tensors"].push_back({"blk.0.channel_mix_receptance.weight", {128, 128}, 0, 1});
       },
       Code::Unsupported,
       {"channel_mix_receptance", "not a part"}},
      {"a reranker of Jina's without its head",
       "jina-bert-v2",
       number("jina-bert-v2.pooling_type", 4),
       Code::Unsupported,
       {"token types"}},
      {"experts that are not chosen by softmax",
       "nomic-bert-moe",
       number("nomic-bert-moe.expert_gating_func", 2),
       Code::Unsupported,
       {"expert_gating_func"}},
  };
  for (const Changed& c : all) {
    Json model = description(c.model);
    c.change(model);
    const auto e = plan_of(plain_model(model));
    ASSERT_TRUE(e) << c.about << ": taken for a model";
    EXPECT_EQ(e->code, c.code) << c.about << ": " << e->message;
    for (const char* word : c.words)
      EXPECT_NE(e->message.find(word), std::string::npos) << word << " in: " << e->message;
  }
}

}  // namespace
}  // namespace gimbal::test
