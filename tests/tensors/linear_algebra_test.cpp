// Triangular solutions, Cholesky and QR against NumPy's (tests/data/linear_algebra.json), and what must hold
// of their results.
#include <gtest/gtest.h>

#include <cmath>

#include <gimbal/linear_algebra.h>
#include <gimbal/recorded.h>

#include "support/golden.h"
#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class LinearAlgebra : public OnCpuQueue {
 protected:
  Tensor given(const nlohmann::ordered_json& values, const Dims& dims, DType type) const {
    const auto v = values.get<std::vector<double>>();
    return Tensor::from<double>(v, dims, *queue).to(type);
  }
};

double largest(const Tensor& t) {
  auto v = t.to(DType::F64).map("abs").max().values<double>();
  EXPECT_TRUE(v) << v.error().message;
  return v ? (*v)[0] : NAN;
}

TEST_F(LinearAlgebra, AgreesWithNumPy) {
  const auto data = read_json(GIMBAL_SOURCE_DIR "/tests/data/linear_algebra.json");
  ASSERT_GE(data["cases"].size(), 4u);
  for (const auto& c : data["cases"])
    for (const auto& [type, bound] : {std::pair(DType::F64, 1e-12), std::pair(DType::F32, 3e-5)}) {
      const int64_t m = c["m"], n = c["n"], columns = c["columns"], k = std::min(m, n);
      SCOPED_TRACE(testing::Message() << m << " x " << n << " " << name_of(type));
      const Tensor spd = given(c["spd"], {n, n}, type), lower = given(c["lower"], {n, n}, type),
                   b = given(c["b"], {n, columns}, type);
      EXPECT_LE(largest(cholesky(spd) - lower) / largest(lower), bound);
      EXPECT_LE(largest(cholesky(spd, true) - lower.t()) / largest(lower), bound);
      EXPECT_LE(largest(solve_triangular(lower, b) - given(c["x"], {n, columns}, type)), bound);
      EXPECT_LE(
          largest(solve_triangular(lower.t(), b, {.upper = true}) - given(c["x_upper"], {n, columns}, type)),
          bound);
      // NumPy's factors but for the signs of r's rows.
      const auto [q, r] = qr(given(c["a"], {m, n}, type));
      const Tensor want_q = given(c["q"], {m, k}, type), want_r = given(c["r"], {k, n}, type);
      const Tensor signs = (q * want_q).sum({0}).map("sign");
      EXPECT_LE(largest(q - want_q * signs), bound);
      EXPECT_LE(largest(r - want_r * signs.unsqueeze(1)), bound * std::max(1.0, largest(want_r)));
    }
}

TEST_F(LinearAlgebra, QrOfManyShapesHasRightAnglesAndGivesTheMatrixBack) {
  for (const Dims& d :
       std::vector<Dims>{{1, 1}, {1, 5}, {5, 1}, {70, 20}, {20, 70}, {2, 3, 9, 9}, {300, 290}}) {
    const Tensor a = Generator(uint64_t(d[0]), *queue).normal(d, DType::F64);
    const auto [q, r] = qr(a);
    ASSERT_TRUE(q.ok() && r.ok()) << q.error().message;
    const int64_t k = std::min(d[d.size() - 2], d.back());
    EXPECT_LE(largest(q.matmul(r) - a), 1e-12 * double(d.back() + 10));
    EXPECT_LE(largest(q.t().matmul(q) - Tensor::eye(k, DType::F64, *queue)), 1e-13 * double(d.back() + 10));
    const Tensor below = Tensor::arange(0, k, 1, DType::I64, *queue)
                             .unsqueeze(1)
                             .map("gt", Tensor::arange(0, r.dim(-1), 1, DType::I64, *queue));
    EXPECT_EQ(largest(where(below, r, Tensor::zeros({1}, DType::F64, *queue))), 0);
  }
  // Columns that depend on each other, and zeros.
  const Tensor a = Tensor::from<double>({1, 2, 0, 2, 4, 0, 3, 6, 0}, {3, 3}, *queue);
  const auto [q, r] = qr(a);
  EXPECT_LE(largest(q.matmul(r) - a), 1e-14);
  EXPECT_LE(largest(q.t().matmul(q) - Tensor::eye(3, DType::F64, *queue)), 1e-14);
}

TEST_F(LinearAlgebra, TheBitsAreThoseOfEveryInstructionSetAndThread) {
  std::vector<std::vector<std::byte>> want;
  for (const auto& [variant, threads] : {std::pair("", 1), std::pair("", 3), std::pair("baseline", 1)}) {
    QueueOptions o;
    o.cpu_variant = variant, o.threads = threads;
    const auto q = open_queue("cpu", o);
    ASSERT_TRUE(q);
    Generator g(7, *q);
    std::vector<std::vector<std::byte>> got;
    for (DType type : {DType::F32, DType::F64}) {
      const Tensor a = g.normal({3, 40, 40}, type), spd = a.matmul(a.t()) + Tensor::eye(40, type, *q) * 40,
                   b = g.normal({40, 700}, type);
      const TensorFunction f = [&](std::span<const Tensor> in) {
        const Tensor l = cholesky(in[0]);
        const auto [ortho, r] = qr(in[1].t());
        return std::vector{l, solve_triangular(l, in[2]), ortho, r,
                           solve_triangular(r, in[2], {.upper = true, .unit_diagonal = true})};
      };
      const std::vector<Tensor> in = {spd, a, b};
      auto recorded = record(*q, f).run(in);
      ASSERT_TRUE(recorded) << recorded.error().message;
      auto direct = f(in);
      ASSERT_TRUE(direct);
      for (size_t i = 0; i < direct->size(); i++) {
        auto bytes = (*direct)[i].bytes();
        ASSERT_TRUE(bytes) << bytes.error().message;
        EXPECT_EQ(*bytes, *(*recorded)[i].bytes()) << "result " << i;
        got.push_back(*bytes);
      }
    }
    if (want.empty()) want = got;
    EXPECT_EQ(got, want);
  }
}

TEST_F(LinearAlgebra, WhatIsNoFactorIsAnError) {
  const Tensor bad = Tensor::from<double>({1, 0, 0, -1, 2, 0, 0, 2}, {2, 2, 2}, *queue);
  EXPECT_EQ(cholesky(bad).error().message, "cholesky: f64[2, 2, 2] is not positive definite (matrix 0)");
  EXPECT_TRUE(cholesky(bad.select(0, 1)).ok());
  EXPECT_EQ(cholesky(Tensor::zeros({2, 3}, DType::F32, *queue)).error().reason, reason::kShape);
  EXPECT_EQ(cholesky(Tensor::zeros({2, 2}, DType::F16, *queue)).error().reason, reason::kDType);
  EXPECT_EQ(qr(Tensor::zeros({2}, DType::F32, *queue)).first.error().reason, reason::kShape);
  const Tensor a = Tensor::eye(3, DType::F32, *queue);
  EXPECT_EQ(solve_triangular(a, Tensor::zeros({4, 1}, DType::F32, *queue)).error().reason, reason::kShape);
  EXPECT_EQ(solve_triangular(a, Tensor::zeros({3, 1}, DType::F64, *queue)).error().reason, reason::kDType);
  EXPECT_EQ(solve_triangular(a, Tensor::zeros({3}, DType::F32, *queue)).dims(), (Dims{3}));
  EXPECT_EQ(solve_triangular(a, Tensor::zeros({5, 3, 0}, DType::F32, *queue)).dims(), (Dims{5, 3, 0}));
  EXPECT_EQ(qr(Tensor::zeros({0, 3}, DType::F32, *queue)).second.dims(), (Dims{0, 3}));
  const auto f = record(*queue, {{DType::F64, {2, 2, 2}}},
                        [](std::span<const Tensor> in) { return std::vector{cholesky(in[0])}; });
  ASSERT_TRUE(f);
  EXPECT_EQ(f->run(std::span(&bad, 1)).error().reason, "not-positive-definite");
}

}  // namespace
}  // namespace gimbal::test
