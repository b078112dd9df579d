// Makes LoRA adapters for models of the reference data.
#include "support/adapters.h"

#include <cmath>

#include <algorithm>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/file.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

constexpr int kRank = 3;
constexpr float kAlpha = 6;

// A matrix of a layer that is multiplied with something: not a norm, not taps. In f32, so that the merged one
// is exact.
bool adaptable(const StoredTensor& t) {
  if (t.type != DType::F32) return false;
  for (const char* name : {"attn_q.", "attn_v.", "attn_qkv.", "attn_output.", "ffn_up", "ffn_down", "ssm_in.",
                           "ssm_out.", "altup_"})
    if (t.rank >= 2 && t.name.find(name) != t.name.npos && t.name.ends_with(".weight")) return true;
  return false;
}

}  // namespace

Adapted make_adapter(const std::string& path, unsigned seed, float size) {
  const ModelSource model = open_file(path);
  std::string bytes = *read_file(path);
  GgufWriter w;
  w.string("general.type", "adapter").string("adapter.type", "lora");
  w.string("general.architecture", *model.metadata().string("general.architecture"));
  w.f32("adapter.lora.alpha", kAlpha);
  std::mt19937 random(seed);
  auto numbers = [&](int64_t n) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all) x = (float(random() % 2001) - 1000) / 4000;
    return all;
  };
  auto put = [&](const std::string& name, std::vector<uint64_t> dims, int64_t experts,
                 const std::vector<float>& values) {
    if (experts > 1) dims.push_back(uint64_t(experts));
    w.tensor(name, dims, 0, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  };
  for (const StoredTensor& t : model.tensors()) {
    if (!adaptable(t)) continue;
    const int64_t k = t.dim[0], n = t.dim[1], e = t.dim[2];
    const auto a = numbers(k * kRank * e);
    auto b = numbers(kRank * n * e);
    for (float& x : b) x *= size;
    put(std::string(t.name) + ".lora_a", {uint64_t(k), kRank}, e, a);
    put(std::string(t.name) + ".lora_b", {kRank, uint64_t(n)}, e, b);
    for (int64_t i = 0; i < e; i++)
      for (int64_t row = 0; row < n; row++)
        for (int64_t column = 0; column < k; column++) {
          char* at = bytes.data() + t.offset + size_t(((i * n + row) * k + column) * 4);
          float x;
          std::memcpy(&x, at, 4);
          double sum = 0;
          for (int64_t r = 0; r < kRank; r++)
            sum += double(a[size_t((i * kRank + r) * k + column)]) * b[size_t((i * n + row) * kRank + r)];
          x = float(x + kAdapterScale * kAlpha / kRank * sum);
          std::memcpy(at, &x, 4);
        }
  }
  const std::string name = seed == 7 ? "" : "-" + std::to_string(seed);
  const Adapted made{temporary_path("adapter" + name + ".gguf"), temporary_path("merged" + name + ".gguf")};
  EXPECT_TRUE(write_file(made.adapter, w.build()));
  EXPECT_TRUE(write_file(made.merged, bytes));
  return made;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++)
    most = std::max(most, std::fabs(double(a[i]) - b[i]));
  return most;
}

}  // namespace gimbal::test
