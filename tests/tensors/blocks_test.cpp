// Quantized tensors: blocks as ggml makes them (golden encode), importance, products of chosen matrices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include <gimbal/recorded.h>

#include "support/golden.h"
#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class Blocks : public OnCpuQueue {};

std::vector<double> doubles(const Tensor& t) {
  auto v = t.to(DType::F64).values<double>();
  EXPECT_TRUE(v) << v.error().message;
  return v ? *v : std::vector<double>();
}
// The root of the mean of the squares, weighted by importance if there is any.
double error_of(const std::vector<double>& got, const std::vector<double>& want,
                const std::vector<double>& importance) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < want.size(); i++) {
    const double w = importance.empty() ? 1 : importance[i % importance.size()];
    sum += w * (got[i] - want[i]) * (got[i] - want[i]), weights += w;
  }
  return std::sqrt(sum / weights);
}

TEST_F(Blocks, AVectorHasThoseOfARow) {
  const Tensor x = Tensor::arange(-32, 32, 1, DType::F32, *queue), row = x.reshape({1, 64});
  const Tensor blocks = x.to(DType::Q8_0);
  ASSERT_TRUE(blocks.ok()) << blocks.error().message;
  EXPECT_EQ(blocks.dims(), (Dims{64}));
  EXPECT_EQ(*blocks.bytes(), *row.to(DType::Q8_0).bytes());
  for (const Tensor& none : {x.narrow(0, 0, 33), Tensor::full(Dims{}, 1, DType::F32, *queue)}) {
    const Tensor refused = none.to(DType::Q8_0);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().reason, reason::kShape);
    EXPECT_NE(refused.error().message.find("q8_0 needs multiples of 32"), std::string::npos)
        << refused.error().message;
  }
}

// ggml's bytes for the formats whose search is ggml's; for all others no larger error than ggml's.
TEST_F(Blocks, AreThoseOfGgmlOrNoWorse) {
  const auto inputs = read_json(golden_dir() + "/encode/inputs.json");
  int formats = 0, cases = 0;
  for (const std::string& path : golden_files("encode", ".json")) {
    if (path.find("inputs.json") != std::string::npos) continue;
    const auto file = read_json(path);
    std::string name = file["type"];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    const auto type = dtype_named(name);
    ASSERT_TRUE(type) << name;
    formats++;
    for (const auto& c : file["cases"]) {
      const auto& row = inputs["rows"][c["input"].get<std::string>()];
      const auto dims = row["dims"].get<Dims>();
      const std::vector<float> x = base64_floats(row["b64"]);
      const Tensor t = Tensor::from<float>(x, dims, *queue);
      std::optional<Tensor> importance;
      const bool weighted = c["importance"];
      if (weighted) {
        const std::vector<float> w = base64_floats(row["importance_b64"]);
        importance = Tensor::from<float>(w, {dims.back()}, *queue);
      }
      const Tensor q = quantize(t, *type, importance ? &*importance : nullptr);
      ASSERT_TRUE(q.ok()) << q.error().message;
      const std::string raw = base64_decode(c["raw_b64"]);
      const auto ours = q.bytes();
      ASSERT_TRUE(ours);
      ASSERT_EQ(ours->size(), raw.size());
      if (c["bits"]) {
        EXPECT_EQ(std::memcmp(ours->data(), raw.data(), raw.size()), 0) << name << " " << c["input"];
      }
      const std::vector<double> exact(x.begin(), x.end()),
          w = importance ? doubles(*importance) : std::vector<double>();
      const double largest = std::max(*std::max_element(exact.begin(), exact.end()),
                                      -*std::min_element(exact.begin(), exact.end()));
      const double theirs = c[weighted ? "rmse_weighted" : "rmse"];
      EXPECT_LE(error_of(doubles(q), exact, w), (weighted ? 1.05 : 1.02) * theirs + 1e-7 * largest)
          << name << " " << c["input"];
      cases++;
    }
  }
  EXPECT_GE(formats, 20);
  EXPECT_GE(cases, 60);
}

TEST_F(Blocks, OfViewsHalvesAndRecordedFunctions) {
  const Tensor x = Generator(1, *queue).normal({256, 6}), h = x.t().to(DType::F16);
  EXPECT_EQ(*x.t().to(DType::Q4_K).bytes(), *x.t().copy().to(DType::Q4_K).bytes());
  EXPECT_EQ(*h.to(DType::Q5_0).bytes(), *h.to(DType::F32).to(DType::Q5_0).bytes());
  const Tensor q = x.t().to(DType::Q6_K);
  EXPECT_EQ(*q.to(DType::Q8_0).bytes(), *q.to(DType::F32).to(DType::Q8_0).bytes());
  const Recorded f = record(*queue, [](std::span<const Tensor> in) {
    const Tensor w = in[0].t().to(DType::Q4_K);
    return std::vector{w, linear(in[1], w), w.to(DType::Q8_0)};
  });
  const std::vector<Tensor> in = {x, Generator(2, *queue).normal({3, 256})};
  auto y = f.run(in);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(*(*y)[0].bytes(), *x.t().to(DType::Q4_K).bytes());
  EXPECT_EQ(*(*y)[1].bytes(), *linear(in[1], x.t().to(DType::Q4_K)).bytes());
}

TEST_F(Blocks, MisuseIsAnError) {
  const Tensor x = Tensor::zeros({2, 256}, DType::F32, *queue);
  EXPECT_EQ(x.narrow(1, 0, 100).to(DType::Q4_K).error().reason, reason::kShape);
  EXPECT_EQ(x.select(1, 0).select(0, 0).to(DType::Q4_0).error().reason, reason::kShape);
  EXPECT_EQ(x.to(DType::I2_S).error().reason, reason::kDType);
  EXPECT_EQ(x.to(DType::Q8_K).error().reason, reason::kDType);
  const Tensor one = Tensor::full({256}, 1, DType::F32, *queue), minus = one * -1;
  EXPECT_TRUE(quantize(x, DType::Q4_K, &one).ok());
  EXPECT_NE(quantize(x, DType::Q4_K, &minus).error().message.find("256 values of the importance"),
            std::string::npos);
  EXPECT_FALSE(quantize(x, DType::Q4_K, &x).ok());
  EXPECT_EQ(quantize(Tensor::zeros({0, 256}, DType::F32, *queue), DType::Q4_K).dims(), (Dims{0, 256}));
}

TEST_F(Blocks, ProductsOfChosenMatricesAreThoseOfEach) {
  Generator g(3, *queue);
  const Tensor w = g.normal({5, 37, 512}), x = g.normal({4, 512}), each = g.normal({4, 3, 512});
  const Tensor ids = Tensor::from<int64_t>({0, 4, 2, 2, 1, 1, 3, 0, 4, 4, 4, 4}, {4, 3}, *queue);
  for (DType type : {DType::F32, DType::Q8_0, DType::Q4_K, DType::IQ4_XS}) {
    const Tensor matrices = w.to(type);
    const Tensor of_rows = linear_indexed(x, matrices, ids), of_slots = linear_indexed(each, matrices, ids);
    ASSERT_TRUE(of_rows.ok() && of_slots.ok()) << of_rows.error().message << of_slots.error().message;
    EXPECT_EQ(of_rows.dims(), (Dims{4, 3, 37}));
    const auto chosen = ids.values<int64_t>();
    ASSERT_TRUE(chosen);
    for (int64_t row = 0; row < 4; row++)
      for (int64_t slot = 0; slot < 3; slot++) {
        const Tensor matrix = matrices.select(0, (*chosen)[size_t(row * 3 + slot)]);
        EXPECT_EQ(*of_rows.select(0, row).select(0, slot).bytes(), *linear(x.select(0, row), matrix).bytes())
            << name_of(type);
        EXPECT_EQ(*of_slots.select(0, row).select(0, slot).bytes(),
                  *linear(each.select(0, row).select(0, slot), matrix).bytes());
      }
  }
  const Tensor halves = linear_indexed(x.to(DType::BF16), w.to(DType::BF16), ids.t().t());
  EXPECT_EQ(halves.dtype(), DType::BF16);
  EXPECT_EQ(linear_indexed(x, w, ids + 1).error().reason, reason::kIndex);
  EXPECT_EQ(linear_indexed(x, w, ids.to(DType::F32)).error().reason, reason::kDType);
  EXPECT_EQ(linear_indexed(x, w.to(DType::F16), ids).error().reason, reason::kDType);
  EXPECT_EQ(linear_indexed(x.narrow(1, 0, 256), w, ids).error().reason, reason::kShape);
}

}  // namespace
}  // namespace gimbal::test
