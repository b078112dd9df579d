// The encoders against ggml's quantizer: its bytes where a format leaves nothing to a search, no larger error
// elsewhere. And the same bytes from every compiler and on every machine, as pinned hashes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>

#include "base/hash.h"
#include "support/golden.h"
#include "tensor/made_up_rows.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

struct EncodedRows {
  int64_t rows, columns;
  std::vector<float> values, importance;
};

EncodedRows rows_named(const nlohmann::ordered_json& inputs, const std::string& name) {
  const auto& r = inputs["rows"][name];
  return {r["dims"][0], r["dims"][1], test::base64_floats(r["b64"]),
          test::base64_floats(r["importance_b64"])};
}

std::vector<uint8_t> encoded_blocks(DType type, const EncodedRows& r, bool weighted) {
  std::vector<uint8_t> blocks(size_t(row_bytes(type, r.rows * r.columns)));
  for (int64_t row = 0; row < r.rows; row++)
    encode(type, r.values.data() + row * r.columns, r.columns,
           blocks.data() + row * row_bytes(type, r.columns), weighted ? r.importance.data() : nullptr);
  return blocks;
}

// Root of the mean squared error, weighted by importance or not.
double encoded_error(DType type, const EncodedRows& r, const std::vector<uint8_t>& blocks, bool weighted) {
  std::vector<float> out(r.values.size());
  decode(type, blocks.data(), int64_t(out.size()), out.data());
  return test::error_of({"", r.values, r.importance}, out, weighted);
}

// golden/README.md, "Encode": bytes where `bits` is true, else at most 1.02 of the error (1.05 with
// importance).
TEST(EncodeGolden, BytesOrErrorsOfTheReferenceQuantizer) {
  const auto inputs = test::read_json(test::golden_dir() + "/encode/inputs.json");
  std::set<DType> seen;
  for (const std::string& path : test::golden_files("encode", ".json")) {
    const auto file = test::read_json(path);
    if (!file.contains("cases")) continue;
    const auto type = dtype_named(file["type"].get<std::string>());
    ASSERT_TRUE(type && can_encode(*type)) << path;
    double worst = 0;
    int equal = 0, cases = 0;
    for (const auto& c : file["cases"]) {
      const bool weighted = c["importance"];
      SCOPED_TRACE(path + " " + c["input"].get<std::string>() + (weighted ? " weighted" : ""));
      const EncodedRows r = rows_named(inputs, c["input"]);
      const std::vector<uint8_t> blocks = encoded_blocks(*type, r, weighted);
      const std::string raw = test::base64_decode(c["raw_b64"]);
      ASSERT_EQ(blocks.size(), raw.size());
      const bool same = std::memcmp(blocks.data(), raw.data(), raw.size()) == 0;
      if (c["bits"]) { EXPECT_TRUE(same); }
      float largest = 0;
      for (float v : r.values) largest = std::max(largest, std::fabs(v));
      const double slack = 1e-7 * largest, theirs = c[weighted ? "rmse_weighted" : "rmse"];
      const double ours = encoded_error(*type, r, blocks, weighted);
      EXPECT_LE(ours, (weighted ? 1.05 : 1.02) * theirs + slack);
      worst = std::max(worst, ours / (theirs + slack)), equal += same, cases++;
    }
    std::printf("%-8s %d of %d with equal bytes, largest error %.3f of ggml's\n", info(*type).name, equal,
                cases, worst);
    EXPECT_GE(cases, 4) << path;
    seen.insert(*type);
  }
  for (DType t : kAllDTypes)
    EXPECT_EQ(can_encode(t), seen.contains(t) || t == DType::F32 || t == DType::F16 || t == DType::BF16)
        << info(t).name;
}

struct PeersError {
  DType type;
  const char* rows;
  bool weighted;
  double error;
};
// By scripts/oracle/encode_errors.cpp, with v0.5.0's libggml-base.
const PeersError kPeersErrors[] = {
#include "tensor/encode_errors.inc"
};

// The bounds of golden/README.md on rows that it does not have.
TEST(EncodeMadeUp, NoLargerErrorsThanTheReferenceQuantizer) {
  for (const test::MadeUpRows& rows : test::made_up_rows()) {
    float largest = 0;
    for (const float v : rows.values) largest = std::max(largest, std::fabs(v));
    int compared = 0;
    for (const PeersError& peer : kPeersErrors) {
      if (peer.rows != rows.name) continue;
      const EncodedRows r{rows.kRows, rows.kColumns, rows.values, rows.importance};
      const std::vector<uint8_t> blocks = encoded_blocks(peer.type, r, peer.weighted);
      EXPECT_LE(encoded_error(peer.type, r, blocks, peer.weighted),
                (peer.weighted ? 1.05 : 1.02) * peer.error + 1e-7 * largest)
          << info(peer.type).name << " " << rows.name << (peer.weighted ? " weighted" : "");
      compared++;
    }
    EXPECT_EQ(compared, 33) << rows.name;
  }
}

// Numbers that need no library: sums of uniform ones, and weights.
EncodedRows pinned_rows() {
  EncodedRows r{4, 768, {}, {}};
  uint32_t x = 2026;
  const auto next = [&] { return float(int32_t(x = x * 1664525u + 1013904223u) >> 8) / float(1 << 23); };
  for (int64_t i = 0; i < r.rows * r.columns; i++) {
    float v = next();
    v += next();
    v += next();
    r.values.push_back(i % 97 == 0 ? 8 * v : i / 768 == 3 ? v * v * v : v);
  }
  for (int64_t i = 0; i < r.columns; i++) r.importance.push_back((next() + 1) * (next() + 1) + 0.01f);
  return r;
}

struct BlockPin {
  DType type;
  uint64_t plain, weighted;
};
// Of g++ 12 on x86-64.
const BlockPin kBlockPins[] = {
#include "tensor/encode_pins.inc"
};

TEST(EncodePins, TheSameBytesFromEveryCompilerAndOnEveryMachine) {
  const EncodedRows r = pinned_rows();
  std::set<DType> pinned;
  const auto hash = [&](DType type, bool weighted) {
    Hash h;
    for (uint8_t b : encoded_blocks(type, r, weighted)) h.add(uint64_t(b));
    return h.value();
  };
  for (const BlockPin& pin : kBlockPins) {
    EXPECT_EQ(hash(pin.type, false), pin.plain) << info(pin.type).name;
    EXPECT_EQ(hash(pin.type, true), pin.weighted) << info(pin.type).name << " weighted";
    pinned.insert(pin.type);
  }
  for (DType t : kAllDTypes) {
    if (!can_encode(t)) continue;
    EXPECT_TRUE(pinned.contains(t)) << info(t).name;
    if (testing::Test::HasFailure()) {
      std::string id = info(t).name;
      for (char& c : id) c = char(std::toupper(c));
      std::printf("    {DType::%s, 0x%016llx, 0x%016llx},\n", id.c_str(), (unsigned long long)hash(t, false),
                  (unsigned long long)hash(t, true));
    }
  }
}

// The bytes of a row do not depend on the rows beside it, nor on how many blocks are encoded at once.
TEST(EncodeRows, ABlockDependsOnItselfAlone) {
  const EncodedRows r = pinned_rows();
  for (DType t : kAllDTypes) {
    if (!can_encode(t)) continue;
    const int length = info(t).block, bytes = info(t).bytes;
    for (const float* w : {static_cast<const float*>(nullptr), r.importance.data()}) {
      std::vector<uint8_t> whole(size_t(row_bytes(t, 768))), parts(whole.size());
      encode(t, r.values.data(), 768, whole.data(), w);
      for (int i = 0; i < 768 / length; i++)
        encode(t, r.values.data() + i * length, length, parts.data() + i * bytes,
               w ? w + i * length : nullptr);
      EXPECT_EQ(whole, parts) << info(t).name;
    }
  }
}

// Importance that is useless changes nothing; columns with much of it come out better.
TEST(EncodeImportance, ZerosAndNanAreIgnoredAndWeightsCount) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  EncodedRows r{1, 256, std::vector<float>(256), std::vector<float>(256)};
  for (float& v : r.values) v = normal(random);
  for (DType t :
       {DType::Q4_K, DType::Q2_K, DType::Q6_K, DType::Q4_0, DType::IQ4_XS, DType::IQ3_S, DType::IQ1_M}) {
    const auto plain = encoded_blocks(t, r, false);
    EXPECT_EQ(encoded_blocks(t, r, true), t == DType::Q4_0 ? encoded_blocks(t, r, true) : plain)
        << info(t).name;
    EncodedRows odd = r;
    for (int i = 0; i < 256; i++) odd.importance[i] = i % 3 ? NAN : -1.0f;
    EXPECT_EQ(encoded_blocks(t, odd, true), encoded_blocks(t, r, true)) << info(t).name;
    EncodedRows heavy = r;
    for (int i = 0; i < 256; i++) heavy.importance[i] = i % 8 == 0 ? 100.0f : 0.1f;
    const double with = encoded_error(t, heavy, encoded_blocks(t, heavy, true), true);
    EXPECT_LT(with, 0.97 * encoded_error(t, heavy, plain, true)) << info(t).name;
  }
}

// The unit of a block is a half, and halves below 2^-14 have fewer bits the smaller they are. A power of two
// changes nothing else, so the same weights lose little more when they are as small as those of models.
TEST(EncodeSmall, SmallWeightsLoseLittleMoreThanTheSameLargeOnes) {
  for (const DType type : {DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_XS})
    for (const bool weighted : {false, true}) {
      const EncodedRows large = pinned_rows();
      const double least = encoded_error(type, large, encoded_blocks(type, large, weighted), weighted);
      double worst = 0;
      for (int power = 3; power <= 12; power++) {  // down to a mean size of 0.0002
        EncodedRows small = large;
        for (float& v : small.values) v = std::ldexp(v, -power);
        const double error = encoded_error(type, small, encoded_blocks(type, small, weighted), weighted);
        worst = std::max(worst, std::ldexp(error, power) / least);
      }
      std::printf("%-6s%s %.4f\n", info(type).name, weighted ? " weighted" : "", worst);
      EXPECT_LT(worst, 1.01) << info(type).name << (weighted ? " weighted" : "");
    }
}

}  // namespace
}  // namespace gimbal
