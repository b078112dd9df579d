// The order of additions that docs/tensors.md defines, and stable sorting, at sizes where blocks, strips and
// digits end: bit for bit those of plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gimbal/tensor.h>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

constexpr const char* kVariants[] = {"baseline", "avx2", "avx512", "neon"};

std::optional<Queue> queue_of(const char* variant) {
  QueueOptions o;
  o.threads = 2, o.cpu_variant = variant;
  auto q = open_queue("cpu", o);
  return q ? std::optional<Queue>(*q) : std::nullopt;  // not of this processor
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, int64_t m, int64_t k,
                           int64_t n) {
  std::vector<float> y(size_t(m * n), 0.f);
  for (int64_t r = 0; r < m; r++)
    for (int64_t i = 0; i < k; i++)
      for (int64_t c = 0; c < n; c++)
        y[size_t(r * n + c)] = std::fma(a[size_t(r * k + i)], b[size_t(i * n + c)], y[size_t(r * n + c)]);
  return y;
}

float chunk(const float* x, int64_t n, int64_t stride) {
  float lane[16] = {};
  for (int64_t i = 0; i < n; i++) lane[i % 16] += x[i * stride];
  for (int step = 8; step; step /= 2)
    for (int i = 0; i < step; i++) lane[i] += lane[i + step];
  return lane[0];
}
float sum(const float* x, int64_t n, int64_t stride) {
  if (n <= 1024) return chunk(x, n, stride);
  std::vector<float> chunks;
  for (int64_t i = 0; i < n; i += 1024)
    chunks.push_back(chunk(x + i * stride, std::min<int64_t>(1024, n - i), stride));
  return sum(chunks.data(), int64_t(chunks.size()), 1);
}

TEST(DefinedOrder, ProductsAreChainsOfRisingK) {
  struct Size {
    int64_t m, k, n;
  };
  int ran = 0;
  for (const char* variant : kVariants) {
    const auto q = queue_of(variant);
    if (!q) continue;
    ran++;
    for (const Size s : {Size{1, 300, 533},
                         {3, 9, 16},
                         {7, 257, 520},
                         {8, 16, 15},
                         {9, 256, 33},
                         {61, 513, 77},
                         {125, 40, 300},
                         {481, 5, 70}}) {
      const Tensor a = Generator(1, *q).normal({s.m, s.k}), b = Generator(2, *q).normal({s.k, s.n});
      const auto want = product(*a.values<float>(), *b.values<float>(), s.m, s.k, s.n);
      EXPECT_EQ(*a.matmul(b).values<float>(), want) << variant << " " << s.m << " x " << s.k << " x " << s.n;
      EXPECT_EQ(*a.matmul(b.t().copy().t()).values<float>(), want) << variant << ": columns of b are dense";
      EXPECT_EQ(*a.t().copy().t().matmul(b).values<float>(), want) << variant << ": columns of a are dense";
    }
  }
  EXPECT_GE(ran, 1);
}

TEST(DefinedOrder, SumsOfRowsAndColumns) {
  int ran = 0;
  for (const char* variant : kVariants) {
    const auto q = queue_of(variant);
    if (!q) continue;
    ran++;
    for (const Dims& d : {Dims{1, 20}, {15, 16}, {17, 530}, {1024, 33}, {1025, 17}, {2048, 16}, {5000, 21}}) {
      const Tensor x = Generator(3, *q).normal(d);
      const auto v = *x.values<float>(), down = *x.sum({0}).values<float>(),
                 mean = *x.mean({0}).values<float>(), across = *x.t().copy().sum({1}).values<float>();
      for (int64_t c = 0; c < d[1]; c++) {
        const float want = sum(v.data() + c, d[0], d[1]);
        ASSERT_EQ(down[size_t(c)], want) << variant << " " << d[0] << " rows, column " << c;
        ASSERT_EQ(across[size_t(c)], want) << variant << " " << d[0] << " rows, as a row";
        ASSERT_EQ(mean[size_t(c)], want / float(d[0])) << variant << " " << d[0] << " rows";
      }
    }
  }
  EXPECT_GE(ran, 1);
}

// NaNs are equal and above infinity, -0 equals 0, and equal values keep their order and their bits.
TEST(DefinedOrder, PlacesAreThoseOfAStableSort) {
  const Queue q = *open_queue("cpu");
  for (int64_t n : {1, 2, 24, 25, 300, 2048, 2049, 4096, 4097, 20000}) {
    const Tensor normal = Generator(uint64_t(n), q).normal({3, n});
    auto values = *normal.values<float>();
    const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                         -std::numeric_limits<float>::quiet_NaN(),
                         -0.f,
                         0.f,
                         std::numeric_limits<float>::infinity(),
                         1e-40f};
    for (size_t i = 0; i < values.size(); i += 7) values[i] = odd[i / 7 % 6];
    const Tensor x = Tensor::from<float>(values, {3, n}, q);
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U32,
                       DType::I16, DType::U8, DType::Bool}) {
      const bool wide = type == DType::I64 || type == DType::I32;
      const Tensor t = (wide ? x * 1e6 : x).to(type);
      const auto of = *t.to(DType::F64).values<double>();
      auto before = [](double a, double b) { return a == a && (b != b || a < b); };
      for (bool falling : {false, true}) {
        const Tensor places = t.argsort(1, falling);
        const auto got = *places.values<int32_t>();
        EXPECT_EQ(*t.sort(1, falling).bytes(), *t.gather(places, 1).bytes())
            << int(type) << ", " << n << " values, falling: " << falling;
        for (int64_t row = 0; row < 3; row++) {
          const double* const v = of.data() + row * n;
          std::vector<int32_t> want(static_cast<size_t>(n));
          std::iota(want.begin(), want.end(), 0);
          std::stable_sort(want.begin(), want.end(), [&](int32_t i, int32_t j) {
            return falling ? before(v[j], v[i]) : before(v[i], v[j]);
          });
          ASSERT_TRUE(std::equal(want.begin(), want.end(), got.begin() + row * n))
              << int(type) << ", " << n << " values, falling: " << falling;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gimbal::test
