// Folders whose matrices are fp8 with scales: by blocks, by rows, and one for a matrix. Values become bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "huggingface/folder.h"
#include "support/golden.h"
#include "support/safetensors_writer.h"
#include "tensor/half.h"

namespace gimbal::test {
namespace {

constexpr int kWidth = 256, kHeads = 2, kHeadSize = 128, kTokens = 420;

uint32_t state = 12345;
uint8_t next_byte() { return uint8_t((state = state * 1664525u + 1013904223u) >> 24); }

std::string halves(int64_t n) {
  std::string out;
  for (int64_t i = 0; i < n; i++) {
    const uint16_t v = float_to_bf16((next_byte() - 128) / 512.0f);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}
std::string eights(int64_t n) {
  std::string out;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t v = next_byte();
    out += char((v & 127) == 127 ? v ^ 1 : v);  // no NaN
  }
  return out;
}
std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// By the definition: sign, four bits of exponent with bias 7, three of mantissa.
double meaning(uint8_t bits) {
  const int e = bits >> 3 & 15;
  const double m = (bits & 7) / 8.0, v = e ? std::exp2(e - 7) * (1 + m) : std::exp2(-6) * m;
  return bits & 128 ? -v : v;
}

struct Fp8Folder {
  std::string path, q, v, down;
  std::vector<float> q_scales, down_scales;
};

Fp8Folder make_folder() {
  Fp8Folder f;
  f.path = temporary_path("fp8");
  std::filesystem::create_directories(f.path);
  const nlohmann::ordered_json config = {
      {"model_type", "llama"},
      {"hidden_size", kWidth},
      {"intermediate_size", kWidth},
      {"num_attention_heads", kHeads},
      {"num_hidden_layers", 1},
      {"vocab_size", kTokens},
      {"rms_norm_eps", 1e-5},
      {"max_position_embeddings", 64},
      {"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}}};
  EXPECT_TRUE(write_file(f.path + "/config.json", config.dump()));
  const auto tokenizers =
      read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  EXPECT_TRUE(write_file(f.path + "/tokenizer.json", tokenizers["gpt2"]["tokenizer"].dump()));
  SafetensorsWriter file;
  const int64_t square = int64_t(kWidth) * kWidth;
  f.q = eights(square), f.v = eights(square), f.down = eights(square);
  f.q_scales = {0.5f, 0.001f, 3.0f, 1.25f};
  for (int i = 0; i < kWidth; i++) f.down_scales.push_back(0.01f * float(i + 1));
  const std::string layer = "model.layers.0.";
  file.add(layer + "self_attn.q_proj.weight", "F8_E4M3", {kWidth, kWidth}, f.q);
  file.add(layer + "self_attn.q_proj.weight_scale_inv", "F32", {2, 2}, floats(f.q_scales));
  file.add(layer + "self_attn.v_proj.weight", "F8_E4M3", {kWidth, kWidth}, f.v);
  file.add(layer + "self_attn.v_proj.weight_scale", "F32", {}, floats({0.125f}));
  file.add(layer + "mlp.down_proj.weight", "F8_E4M3", {kWidth, kWidth}, f.down);
  file.add(layer + "mlp.down_proj.weight_scale", "F32", {kWidth, 1}, floats(f.down_scales));
  for (const char* name : {"self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj"})
    file.add(layer + name + ".weight", "BF16", {kWidth, kWidth}, halves(square));
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    file.add(layer + name + ".weight", "BF16", {kWidth}, halves(kWidth));
  file.add("model.embed_tokens.weight", "BF16", {kTokens, kWidth}, halves(int64_t(kTokens) * kWidth));
  file.add("model.norm.weight", "BF16", {kWidth}, halves(kWidth));
  EXPECT_TRUE(write_file(f.path + "/model.safetensors", file.text()));
  return f;
}

TEST(Fp8Folder, ValuesAreScaledAndBecomeBf16) {
  const Fp8Folder f = make_folder();
  const auto source = open_source(f.path);
  if (!dtype_named("f8_e4m3")) {
    // A build without the tensor library's formats names the format that it lacks.
    ASSERT_FALSE(source);
    EXPECT_NE(source.error().message.find("'F8_E4M3'"), std::string::npos) << source.error().message;
    return;
  }
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_FALSE(source->tensors().find("blk.0.attn_q.weight_scale_inv"));
  const auto check = [&](const char* name, const std::string& bytes, auto&& scale, auto&& row_of) {
    const StoredTensor* t = source->tensors().find(name);
    ASSERT_TRUE(t) << name;
    EXPECT_EQ(t->type, DType::BF16);
    const auto got = source->read(*t);
    ASSERT_TRUE(got) << got.error().message;
    for (int row = 0; row < kWidth; row++)
      for (int column = 0; column < kWidth; column++) {
        const int from = row_of(row);
        const float value =
            float(meaning(uint8_t(bytes[size_t(from * kWidth + column)]))) * scale(from, column);
        ASSERT_EQ(read_le<uint16_t>(got->data() + 2 * (row * kWidth + column)), float_to_bf16(value))
            << row << " " << column;
      }
    // A part that begins and ends within rows.
    std::vector<std::byte> part(1001);
    ASSERT_TRUE(source->read(*t, 333, part.data(), part.size()));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), got->begin() + 333));
  };
  const auto same = [](int row) { return row; };
  // Heads turn from halves to neighbours: row 2i + s of a head is row i of its half s.
  const auto turned = [](int row) {
    const int within = row % kHeadSize;
    return row - within + within % 2 * (kHeadSize / 2) + within / 2;
  };
  check(
      "blk.0.attn_q.weight", f.q,
      [&](int row, int column) { return f.q_scales[size_t(row / 128 * 2 + column / 128)]; }, turned);
  check(
      "blk.0.attn_v.weight", f.v, [](int, int) { return 0.125f; }, same);
  check(
      "blk.0.ffn_down.weight", f.down, [&](int row, int) { return f.down_scales[size_t(row)]; }, same);
}

TEST(Fp8Folder, ScalesMustCoverTheMatrix) {
  if (!dtype_named("f8_e4m3")) return;  // refused before: the test above
  const Fp8Folder f = make_folder();
  std::string config = *read_file(f.path + "/config.json");
  config.replace(config.find("[128,128]"), 9, "[64,64]");
  ASSERT_TRUE(write_file(f.path + "/config.json", config));
  const auto source = open_source(f.path);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("scales"), std::string::npos) << source.error().message;
}

}  // namespace
}  // namespace gimbal::test
