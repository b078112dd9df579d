// What stored weights mean: every block of the reference data bit for bit, I2_S by its definition, and the
// encoders against the nearest value that the format can hold, found in double precision.
#include "tensor/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "files/gguf.h"
#include "support/golden.h"
#include "tensor/half.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

struct Block {
  std::string kind, raw;
  std::vector<float> values;
};

std::vector<Block> golden_blocks(const nlohmann::ordered_json& file) {
  std::vector<Block> blocks;
  for (const auto& b : file["blocks"])
    blocks.push_back({b["kind"], test::base64_decode(b["raw_b64"]), test::base64_floats(b["values_b64"])});
  return blocks;
}

std::vector<Block> golden_blocks(DType type) {
  for (const std::string& path : test::golden_files("dequant", ".json")) {
    auto file = test::read_json(path);
    if (dtype_named(file["type"].get<std::string>()) == type) return golden_blocks(file);
  }
  ADD_FAILURE() << "no reference blocks for " << info(type).name;
  return {};
}

TEST(Decode, EqualsTheReferenceBitForBit) {
  std::set<DType> seen;
  for (const std::string& path : test::golden_files("dequant", ".json")) {
    SCOPED_TRACE(path);
    const auto file = test::read_json(path);
    const auto type = dtype_named(file["type"].get<std::string>());
    ASSERT_TRUE(type && can_decode(*type));
    EXPECT_EQ(info(*type).gguf, file["ggml_type"].get<int>());
    int64_t blocks = 0, values = 0, nans = 0;
    for (const Block& b : golden_blocks(file)) {
      const auto n = int64_t(b.values.size());
      ASSERT_GT(n, 0);
      ASSERT_EQ(n % info(*type).block, 0);
      ASSERT_EQ(int64_t(b.raw.size()), row_bytes(*type, n));
      const std::string shifted = "?" + b.raw;  // blocks need no alignment
      std::vector<float> out(b.values.size());
      decode(*type, shifted.data() + 1, n, out.data());
      for (int64_t i = 0; i < n; i++) {
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(b.values[i]))
            << "block " << blocks << " (" << b.kind << ") value " << i << ": " << out[i] << ", not "
            << b.values[i];
        nans += std::isnan(out[i]);
      }
      blocks++, values += n;
    }
    ASSERT_GE(blocks, 7);
    std::printf("%-8s %lld blocks, %lld values equal (%lld NaN)\n", info(*type).name, (long long)blocks,
                (long long)values, (long long)nans);
    seen.insert(*type);
  }
  // No format may claim to be decodable without reference blocks; I2_S has its own tests below.
  for (DType t : kAllDTypes)
    EXPECT_EQ(can_decode(t), seen.contains(t) || tensor_tail_bytes(t) > 0) << info(t).name;
}

TEST(Decode, ConsecutiveBlocksAsOneRow) {
  for (DType type : {DType::Q4_0, DType::Q6_K, DType::IQ3_S, DType::F16}) {
    std::string raw;
    std::vector<float> values;
    for (const Block& b : golden_blocks(type)) {
      raw += b.raw;
      values.insert(values.end(), b.values.begin(), b.values.end());
    }
    std::vector<float> out(values.size() + 1, 7.0f);
    decode_tensor(type, raw.data(), int64_t(values.size()), out.data());
    EXPECT_EQ(std::memcmp(out.data(), values.data(), 4 * values.size()), 0) << info(type).name;
    EXPECT_EQ(out.back(), 7.0f);  // not a value more
  }
}

// The definition in the reference data's README, packed from known values.
TEST(Decode, I2sByItsDefinition) {
  std::mt19937 random(3);
  std::vector<int> values(512);
  for (int& v : values) v = int(random() % 3) - 1;
  std::vector<uint8_t> data(row_bytes(DType::I2_S, 512) + tensor_tail_bytes(DType::I2_S));
  for (int i = 0; i < 512; i++)
    data[i / 128 * 32 + i % 32] |= uint8_t((values[i] + 1) << (6 - 2 * (i % 128 / 32)));
  const float scale = 0.37f;
  std::memcpy(data.data() + 128, &scale, 4);
  std::vector<float> out(512);
  decode_tensor(DType::I2_S, data.data(), 512, out.data());
  for (int i = 0; i < 512; i++) ASSERT_EQ(out[i], float(values[i]) * scale) << i;
  decode(DType::I2_S, data.data() + 32, 128, out.data(), 2.0f);
  for (int i = 0; i < 128; i++) ASSERT_EQ(out[i], float(values[128 + i]) * 2) << i;
}

TEST(Decode, I2s64ByItsDefinition) {
  std::mt19937 random(4);
  std::vector<int> values(192);
  for (int& v : values) v = int(random() % 3) - 1;
  std::vector<uint8_t> data(row_bytes(DType::I2_S64, 192) + tensor_tail_bytes(DType::I2_S64));
  for (int i = 0; i < 192; i++)
    data[i / 64 * 16 + i % 16] |= uint8_t((values[i] + 1) << (6 - 2 * (i % 64 / 16)));
  const float scale = 0.37f;
  std::memcpy(data.data() + 48, &scale, 4);
  std::vector<float> out(192);
  decode_tensor(DType::I2_S64, data.data(), 192, out.data());
  for (int i = 0; i < 192; i++) ASSERT_EQ(out[i], float(values[i]) * scale) << i;
}

// The scale and the end of a tensor in a real file. That the file's values are in the right places shows in
// golden_logits_test, since there is no second file with the same weights.
TEST(Decode, I2sFileHoldsThreeValues) {
  const auto file = open_gguf(test::golden_dir() + "/arch/bitnet-b158-i2s.gguf");
  ASSERT_TRUE(file) << file.error().message;
  int tensors = 0;
  for (const StoredTensor& t : file->tensors()) {
    if (t.type != DType::I2_S) continue;
    const int64_t n = t.dim[0] * t.dim[1];
    const auto data = file->read(t);
    ASSERT_TRUE(data);
    ASSERT_EQ(int64_t(t.bytes), row_bytes(t.type, n) + tensor_tail_bytes(t.type)) << t.name;
    const float scale = tensor_scale(t.type, data->data(), n);
    std::vector<float> values(n);
    decode_tensor(t.type, data->data(), n, values.data());
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    EXPECT_EQ(values, (std::vector<float>{-scale, 0, scale})) << t.name;
    EXPECT_GT(scale, 0.01f) << t.name;
    EXPECT_LT(scale, 1.0f) << t.name;
    tensors++;
  }
  EXPECT_EQ(tensors, 14);
}

TEST(Encode, PlainFormatsGiveBackTheReferenceBytes) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    for (const Block& b : golden_blocks(type)) {
      std::string raw(b.raw.size(), '?');
      encode(type, b.values.data(), int64_t(b.values.size()), raw.data());
      EXPECT_EQ(raw, b.raw) << info(type).name;
    }
}

// ggml's own quantized blocks hold their extreme values exactly, so the same rule applied again must find
// them again.
TEST(Encode, FindsTheReferenceQuantizersBlocksAgain) {
  for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1}) {
    int blocks = 0;
    for (const Block& b : golden_blocks(type)) {
      if (b.kind != "quantized") continue;
      std::string raw(b.raw.size(), '?');
      encode(type, b.values.data(), int64_t(b.values.size()), raw.data());
      EXPECT_EQ(raw, b.raw) << info(type).name;
      blocks++;
    }
    EXPECT_GT(blocks, 0) << info(type).name;
  }
}

// A uniform grid: values offset + step * code.
struct Grid {
  double step, offset;
  int low, high;

  double distance(double x) const {
    const double code =
        step == 0 ? 0 : std::clamp(std::nearbyint((x - offset) / step), double(low), double(high));
    return std::fabs(x - offset - step * code);
  }
};

// By how much a half may differ from the number it stands for.
double half_error(double x) { return std::fabs(x) * 0x1p-11 * (1 + 1e-6) + 0x1p-25; }

double half_at(const std::vector<uint8_t>& block, int at) {
  return half_to_float(uint16_t(block[at] | block[at + 1] << 8));
}

std::vector<std::vector<float>> sample_blocks(int n) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> all{std::vector<float>(n, 0.0f), std::vector<float>(n, 1.5f),
                                      std::vector<float>(n, -3e-5f)};
  for (int i = 0; i < 3000; i++) {
    auto& x = all.emplace_back(n);
    const float size = std::ldexp(1.0f, i % 24 - 12), middle = i % 3 ? 0.0f : size * normal(random);
    for (float& v : x) v = middle + size * normal(random);
    if (i % 5 == 0) x[random() % n] = -8 * size;  // an outlier
    if (i % 7 == 0) std::fill(x.begin(), x.begin() + 16, 0.0f);
  }
  return all;
}

TEST(Encode, StepFollowsFromTheExtremesAndCodesAreNearest) {
  for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1}) {
    ASSERT_TRUE(can_encode(type));
    const bool has_offset = type == DType::Q4_1 || type == DType::Q5_1;
    const int codes = type == DType::Q8_0 ? 255 : type == DType::Q4_0 || type == DType::Q4_1 ? 16 : 32;
    double worst = 0;
    for (const auto& x : sample_blocks(32)) {
      std::vector<uint8_t> block(info(type).bytes);
      encode(type, x.data(), 32, block.data());
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      const double extreme = std::fabs(*low) > std::fabs(*high) ? *low : *high;
      const double step = has_offset            ? (double(*high) - *low) / (codes - 1)
                          : type == DType::Q8_0 ? std::fabs(extreme) / 127
                                                : extreme / -(codes / 2);
      Grid grid{half_at(block, 0), has_offset ? half_at(block, 2) : 0, has_offset ? 0 : -codes / 2,
                has_offset ? codes - 1 : (codes - 1) / 2};
      // -extreme may be in the block as well, and either may have given the sign.
      ASSERT_LE(std::fabs(std::fabs(grid.step) - std::fabs(step)), half_error(step)) << info(type).name;
      if (has_offset) { ASSERT_LE(std::fabs(grid.offset - *low), half_error(*low)) << info(type).name; }
      // Codes are chosen for the numbers before they became halves.
      const double slack =
          2 * (codes * half_error(step) + (has_offset ? half_error(*low) : 0)) + 1e-5 * std::fabs(step);
      std::vector<float> out(32);
      decode(type, block.data(), 32, out.data());
      for (int i = 0; i < 32; i++) {
        const double error = std::fabs(double(out[i]) - x[i]);
        ASSERT_LE(error, grid.distance(x[i]) + slack)
            << info(type).name << " " << x[i] << " became " << out[i];
        if (std::fabs(step) > 1e-3) worst = std::max(worst, error / std::fabs(step));
      }
    }
    std::printf("%-8s largest error %.3f steps\n", info(type).name, worst);
  }
}

// ggml rounds with roundf(): a step of 1 makes ties of halves.
TEST(Encode, TiesOfQ8_0GoAwayFromZero) {
  float x[32] = {127, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 126.5f, -126.5f};
  const int8_t codes[8] = {127, 1, -1, 2, 3, -3, 127, -127};
  uint8_t block[34];
  encode(DType::Q8_0, x, 32, block);
  for (int i = 0; i < 8; i++) EXPECT_EQ(int8_t(block[2 + i]), codes[i]) << x[i];
}

// A cache row may come to hold anything; encoding it must stay defined (the sanitizer builds watch this
// test).
TEST(Encode, AcceptsNanAndInfinity) {
  for (DType t : kAllDTypes) {
    if (!can_encode(t)) continue;
    for (float odd : {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f}) {
      std::vector<float> x(256, 1.0f), out(256);
      x[3] = odd;
      x[40] = -odd;
      std::vector<uint8_t> blocks(row_bytes(t, 256) + 1, 0x5a);
      encode(t, x.data(), 256, blocks.data());
      EXPECT_EQ(blocks.back(), 0x5a);
      decode(t, blocks.data(), 256, out.data());
      // Blocks of 32 without an odd value are not touched by it.
      if (info(t).block <= 32) { EXPECT_NEAR(out[100], 1.0f, 0.01f) << info(t).name; }
    }
  }
}

}  // namespace
}  // namespace gimbal
