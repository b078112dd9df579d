#include "support/made_draft_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/file.h"
#include "model/arch.h"
#include "support/golden.h"
#include "support/made_gguf.h"

namespace gimbal::test {

std::string made_draft_head(const ModelSource& model, const std::string& arch) {
  const bool eagle = arch == "eagle3";
  const Config c = *configure(model);
  const int64_t d = c.width, hidden = 2 * d, joined = eagle ? 2 * d : d;
  MadeGguf w;
  w.string("general.architecture", arch);
  for (const auto& [key, entry] : model.metadata())
    if (key.starts_with("tokenizer.")) w.add(key, entry);
  for (const auto& [key, number] : {std::pair("block_count", 1),
                                    {"embedding_length", c.width},
                                    {"target_hidden_size", c.width},
                                    {"context_length", c.context},
                                    {"feed_forward_length", int(hidden)},
                                    {"block_size", 8},
                                    {"attention.head_count", 1}})
    w.u32(arch + "." + key, uint32_t(number));
  if (!model.metadata().find("tokenizer.ggml.mask_token_id")) w.u32("tokenizer.ggml.mask_token_id", 3);
  const int32_t last = std::min(2, c.layers - 1);
  const std::vector<int32_t> layers = {0, std::min(1, last), last};
  w.array<int32_t>(arch + ".target_layers", MetadataType::I32, layers);
  w.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);

  std::mt19937 random(11);
  auto add = [&](const std::string& name, const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (int64_t n : dims) count *= size_t(n);
    std::vector<float> values(count, 1);
    if (dims.size() > 1)
      for (float& v : values) v = (float(random() % 2001) - 1000) / 600 / std::sqrt(float(dims[0]));
    w.floats(name + ".weight", dims, values);
  };
  add("fc", {3 * d, d}), add("output_norm", {d});
  for (const char* norm : {"attn_norm", "ffn_norm"}) add(std::string("blk.0.") + norm, {d});
  for (const char* part : {"attn_q", "attn_k", "attn_v"}) add(std::string("blk.0.") + part, {joined, d});
  if (eagle) add("blk.0.attn_norm_2", {d});
  else add("enc.output_norm", {d}), add("blk.0.attn_q_norm", {d}), add("blk.0.attn_k_norm", {d});
  add("blk.0.attn_output", {d, d}), add("blk.0.ffn_gate", {d, hidden}), add("blk.0.ffn_up", {d, hidden});
  add("blk.0.ffn_down", {hidden, d});
  const std::string path = temporary_path("draft-head.gguf");
  EXPECT_TRUE(write_file(path, w.build()));
  return path;
}

}  // namespace gimbal::test
