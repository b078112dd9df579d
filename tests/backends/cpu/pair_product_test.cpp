// The rows of `--numerics fast`: products of bf16 and f16 weights by products of bf16 pairs, of vectors and
// of tiles, in sizes of real models. Where the CPU has no tiles, they are emulated after Intel's manual.
// Against the double-precision product they stay within the tolerance that the row states; against that of
// the same numbers rounded to bf16 they are as near as exact rows are, so that no term is missing.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "device/fit.h"
#include "ops/cases.h"
#include "program/builder.h"
#include "support/placed.h"
#include "tensor/half.h"

extern "C" const gimbal_backend* gimbal_backend_cpu_emulated(void);

namespace gimbal {
namespace {

constexpr int kPairOutputs = 37, kPairRows = 50;  // no multiples of what a kernel takes at once

float as_bf16(float x) { return bf16_to_float(float_to_bf16(x)); }

class PairProduct : public testing::TestWithParam<std::tuple<std::string, DType, int>> {
 protected:
  // With the emulated variants in its table.
  PairProduct() {
    auto d = Device::open(*gimbal_backend_cpu_emulated(), 0, "threads=2");
    EXPECT_TRUE(d) << d.error().message;
    if (d) device_ = std::move(*d);
  }

  // What the row of the table computes.
  std::vector<float> product(size_t kernel, const std::vector<uint16_t>& w, const std::vector<float>& x) {
    const auto [variant, format, columns] = GetParam();
    ProgramBuilder b(*device_, kPairRows, kPairRows);
    const Value rows = b.rows_input("x", DType::F32, columns);
    const Value weight = b.matrix("w", Shape(format, {columns, kPairOutputs}));
    const Value y = b.linear(weight, rows);
    b.output(y);
    Program p = *std::move(b).finish();
    EXPECT_EQ(p.ops.size(), 1u);
    p.ops[0].kernel = uint16_t(kernel);
    std::vector<Buffer> buffers;
    gimbal_buffer* slots[kSlots];
    for (size_t i = 0; i < kSlots; i++) {
      buffers.push_back(*device_->allocate(std::max<uint64_t>(p.slot_bytes[i], 64)));
      slots[i] = buffers[i].handle();
    }
    const gimbal_value &wv = p.values[weight.id], &xv = p.values[rows.id], &yv = p.values[y.id];
    EXPECT_TRUE(device_->pack(buffers[wv.slot], wv, w.data(), 0, kPairOutputs));
    EXPECT_TRUE(device_->write(buffers[xv.slot], xv.offset, x.data(), x.size() * 4));
    auto e = device_->compile(p.view());
    EXPECT_TRUE(e);
    EXPECT_TRUE(device_->submit(*e, slots, kSlots, {kPairRows, kPairRows}));
    EXPECT_TRUE(device_->wait());
    std::vector<float> out(size_t(kPairOutputs) * kPairRows);
    EXPECT_TRUE(device_->read(buffers[yv.slot], yv.offset, out.data(), out.size() * 4));
    return out;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(PairProduct, IsWithinItsToleranceAndLeavesNothingOut) {
  ASSERT_TRUE(device_);
  const auto [variant, format, columns] = GetParam();
  const std::string name = "cpu." + variant + ".mat_mul." + info(format).name;
  size_t kernel = device_->kernel_count();
  for (size_t i = 0; i < device_->kernel_count(); i++)
    if (device_->kernel(i).name == name) kernel = i;
  if (kernel == device_->kernel_count()) GTEST_SKIP() << "this build is for a CPU that has no such rows";
  const gimbal_kernel_info& row = device_->kernel(kernel);
  EXPECT_EQ(row.numerics, GIMBAL_FAST);
  EXPECT_GT(row.tolerance, 0);
  EXPECT_LT(row.tolerance, 0.01);
  if (row.needs & ~device_->describe().features)
    GTEST_SKIP() << "this CPU has no "
                 << (variant == "amxbf16" ? "AMX-BF16; emulated tiles stand in for it" : "AVX-512 BF16");

  std::mt19937 bits(uint32_t(columns) + uint32_t(format));
  std::normal_distribution<float> normal;
  std::vector<uint16_t> w;
  std::vector<float> w_value, x;
  for (int i = 0; i < kPairOutputs * columns; i++) {
    const float v = 0.02f * normal(bits);
    w.push_back(format == DType::F16 ? float_to_half(v) : float_to_bf16(v));
    w_value.push_back(format == DType::F16 ? half_to_float(w.back()) : bf16_to_float(w.back()));
  }
  for (int i = 0; i < kPairRows * columns; i++) x.push_back(normal(bits));

  const std::vector<float> got = product(kernel, w, x);
  const Shape shapes[] = {Shape(format, {columns, kPairOutputs}), Shape(DType::F32, {columns, kPairRows})};
  const double additions = tolerance(OpKind::MatMul, shapes);
  double worst = 0, worst_rounded = 0, rounding = 0;
  for (int r = 0; r < kPairRows; r++)
    for (int o = 0; o < kPairOutputs; o++) {
      double exact = 0, terms = 0, rounded = 0, rounded_terms = 0;
      for (int k = 0; k < columns; k++) {
        const float a = w_value[size_t(o * columns + k)], b = x[size_t(r * columns + k)];
        exact += double(a) * b, terms += std::fabs(double(a) * b);
        rounded += double(as_bf16(a)) * as_bf16(b),
            rounded_terms += std::fabs(double(as_bf16(a)) * as_bf16(b));
      }
      const double y = got[size_t(r * kPairOutputs + o)];
      worst = std::max(worst, std::fabs(y - exact) / terms);
      rounding = std::max(rounding, std::fabs(rounded - exact) / terms);
      worst_rounded = std::max(worst_rounded, std::fabs(y - rounded) / rounded_terms);
    }
  std::printf(
      "%s, %d columns: %.2e of the terms from the exact sum (%.2e allowed), %.2e from that of rounded "
      "numbers (%.2e allowed)\n",
      name.c_str(), columns, worst, double(row.tolerance) + additions, worst_rounded, additions);
  EXPECT_LE(worst, double(row.tolerance) + additions);
  EXPECT_LE(worst_rounded, additions);
  EXPECT_GT(rounding, additions) << "what is rounded cannot be told from what is added";
}

INSTANTIATE_TEST_SUITE_P(Sizes, PairProduct,
                         testing::Combine(testing::Values("avx512bf16", "amxbf16", "amxbf16_emulated"),
                                          testing::Values(DType::BF16, DType::F16),
                                          testing::Values(2048, 4096, 5121, 8192)));

}  // namespace
}  // namespace gimbal
