// Checks of formats in blocks and of linear algebra on a device of any backend: the bits of the CPU, ggml's
// blocks (golden/encode), NumPy's factors (data/linear_algebra.json).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gimbal/linear_algebra.h>
#include <gimbal/recorded.h>

#include "gpu/tensors_checks.h"
#include "support/golden.h"

namespace gimbal::test {

// The formats that a cast decodes.
inline constexpr DType kBlockFormats[] = {
    DType::Q8_0,  DType::Q4_0,   DType::Q4_1,    DType::Q5_0,  DType::Q5_1,  DType::IQ4_NL,  DType::MXFP4,
    DType::Q2_0,  DType::NVFP4,  DType::Q1_0,    DType::Q2_K,  DType::Q3_K,  DType::Q4_K,    DType::Q5_K,
    DType::Q6_K,  DType::IQ4_XS, DType::TQ1_0,   DType::TQ2_0, DType::IQ1_S, DType::IQ2_XXS, DType::IQ2_XS,
    DType::IQ1_M, DType::IQ2_S,  DType::IQ3_XXS, DType::IQ3_S};

// The numbers that differ, where two NaN are the same.
inline size_t different_floats(const Tensor& a, const Tensor& b) {
  auto x = a.values<float>(), z = b.values<float>();
  EXPECT_TRUE(x) << x.error().message;
  EXPECT_TRUE(z) << z.error().message;
  if (!x || !z || x->size() != z->size()) return SIZE_MAX;
  size_t n = 0;
  for (size_t i = 0; i < x->size(); i++) {
    const float p = (*x)[i], q = (*z)[i];
    n += !(std::isnan(p) && std::isnan(q)) && std::bit_cast<uint32_t>(p) != std::bit_cast<uint32_t>(q);
  }
  return n;
}

// Random bytes reach every code and scale, also units that are not finite.
inline void check_decoded_bits(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  std::mt19937 random(11);
  for (DType type : kBlockFormats) {
    SCOPED_TRACE(name_of(type));
    const Dims dims = {3, 5, 512};
    const Tensor numbers = Generator(5, cpu).normal(dims), blocks = numbers.to(type);
    auto bytes = blocks.bytes();
    ASSERT_TRUE(bytes) << bytes.error().message;
    const Tensor there = Tensor::from_bytes(*bytes, dims, type, q);
    const auto views = [](const Tensor& t) { return std::vector{t, t.narrow(0, 1, 2), t.select(0, 2)}; };
    for (DType to : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I16}) {
      const auto want = views(blocks), got = views(there);
      for (size_t i = 0; i < want.size(); i++)
        EXPECT_EQ(bits_of(got[i].to(to)), bits_of(want[i].to(to))) << "view " << i << " to " << name_of(to);
    }
    for (std::byte& b : *bytes) b = std::byte(random());
    EXPECT_EQ(different_floats(Tensor::from_bytes(*bytes, dims, type, q).to(DType::F32),
                               Tensor::from_bytes(*bytes, dims, type, cpu).to(DType::F32)),
              0u)
        << "of random blocks";
  }
}

// The blocks that differ, by their numbers.
inline std::vector<size_t> different_blocks(const Tensor& a, const Tensor& b, size_t count) {
  const auto x = a.bytes(), z = b.bytes();
  EXPECT_TRUE(x) << x.error().message;
  EXPECT_TRUE(z) << z.error().message;
  if (!x || !z || x->size() != z->size()) return {SIZE_MAX};
  std::vector<size_t> all;
  for (size_t i = 0, bytes = x->size() / count; i < count; i++)
    if (std::memcmp(x->data() + i * bytes, z->data() + i * bytes, bytes) != 0) all.push_back(i);
  return all;
}

// ggml's bytes, where no search is needed.
inline void check_golden_blocks(const Queue& q, const std::string& name, DType type) {
  const auto inputs = read_json(golden_dir() + "/encode/inputs.json");
  const auto file = read_json(golden_dir() + "/encode/" + name + ".json");
  int cases = 0;
  for (const auto& c : file["cases"]) {
    if (c["importance"]) continue;
    const auto& row = inputs["rows"][c["input"].get<std::string>()];
    const std::vector<float> x = base64_floats(row["b64"]);
    const auto got = Tensor::from<float>(x, row["dims"].get<Dims>(), q).to(type).bytes();
    ASSERT_TRUE(got) << got.error().message;
    const std::string raw = base64_decode(c["raw_b64"]);
    ASSERT_EQ(got->size(), raw.size());
    EXPECT_EQ(std::memcmp(got->data(), raw.data(), raw.size()), 0) << name << " " << c["input"];
    cases++;
  }
  EXPECT_GE(cases, 1) << name;
}

// Rows of one block and of several, whose sizes have many forms: zeros, small and large numbers, units that
// few bits can hold, numbers that a block holds exactly.
inline Tensor rows_to_encode(int64_t width, const Queue& q) {
  const Tensor numbers = Generator(6, q).normal({3, 12, width}),
               scales = Tensor::from<float>(
                   {1, 0, 1e-4f, 1e4f, 3e-7f, -1, 65000, 2e-5f, 1e-5f, 4e-6f, 1e-6f, 0.25f}, {12, 1}, q);
  Tensor x = (numbers * scales).copy();
  const Tensor whole = (numbers.select(1, 0).narrow(0, 0, 1) * 2).map("round").copy();
  EXPECT_TRUE(x.narrow(0, 2, 1).select(1, 11).copy_(whole));
  EXPECT_TRUE(x.narrow(0, 2, 1).select(1, 5).copy_(whole * 0.125f));
  return x;
}

// Importances of three blocks: of all sizes, with none for a block, with one far above the rest; of sums that
// only double precision holds; too small and too large for some devices; all alike.
inline std::vector<Tensor> importances(int64_t block, const Queue& q) {
  const Tensor random = Generator(12, q).normal({3, block}), bell = random * random;
  const auto with = [&](std::vector<float> sizes) {
    return (bell * Tensor::from<float>(sizes, {3, 1}, q)).reshape({3 * block}).copy();
  };
  std::vector<Tensor> all = {with({1, 0, 1000}), with({3e37f, 1e-38f, 1e-41f}), with({0, 0, 0})};
  Tensor one = with({1, 1, 1});
  EXPECT_TRUE(one.narrow(0, block + 7, 1).fill_(1e9));
  EXPECT_TRUE(one.narrow(0, 2 * block, 2).fill_(INFINITY));
  all.push_back(one);
  return all;
}

// Rows of three blocks, with values that are not finite, far from 0 and too small for a block.
inline void check_weighted_bits(const Queue& q, DType type, int64_t block) {
  const Queue cpu = queue_on("cpu");
  Tensor x = rows_to_encode(block, cpu).permute({1, 0, 2}).reshape({12, 3 * block}).copy();
  for (double bad : {double(NAN), double(INFINITY), 3e38, 1e-39})
    EXPECT_TRUE(x.select(0, 11).narrow(0, int64_t(std::fabs(bad) < 1 ? 5 : 40 + block), 1).fill_(bad));
  EXPECT_TRUE(x.select(0, 7).copy_(Generator(9, cpu).normal({3 * block}) * 0.001f + 5));
  EXPECT_TRUE(x.select(0, 9).copy_(Generator(9, cpu).normal({3 * block}) * 1e-36f));
  const auto all = importances(block, cpu);
  for (size_t i = 0; i < all.size(); i++) {
    const Tensor there = all[i].to(q), got = quantize(x.to(q), type, &there);
    ASSERT_TRUE(got.ok()) << got.error().message;
    const Tensor want = quantize(x, type, &all[i]);
    EXPECT_EQ(different_blocks(got, want, 36), std::vector<size_t>()) << "importance " << i;
    if (i > 0) continue;
    const auto later = record(q, [&](std::span<const Tensor> in) {
                         return std::vector{quantize(in[0], type, &in[1])};
                       }).run(std::vector{x.to(q), there});
    ASSERT_TRUE(later) << later.error().message;
    EXPECT_EQ(different_blocks((*later)[0], want, 36), std::vector<size_t>()) << "recorded";
  }
}

inline void check_encoded_bits(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  const struct {
    const char* name;
    int64_t block;
    bool searched;  // so that ggml's bytes are others
  } formats[] = {{"Q8_0", 32, false},    {"Q4_0", 32, false},   {"Q4_1", 32, false},    {"Q5_0", 32, false},
                 {"Q5_1", 32, false},    {"MXFP4", 32, false},  {"NVFP4", 64, false},   {"TQ1_0", 256, false},
                 {"TQ2_0", 256, false},  {"Q1_0", 128, false},  {"Q2_0", 64, false},    {"IQ4_NL", 32, true},
                 {"Q2_K", 256, true},    {"Q3_K", 256, true},   {"Q4_K", 256, true},    {"Q5_K", 256, true},
                 {"Q6_K", 256, true},    {"IQ4_XS", 256, true}, {"IQ3_XXS", 256, true}, {"IQ3_S", 256, true},
                 {"IQ2_XXS", 256, true}, {"IQ2_XS", 256, true}, {"IQ2_S", 256, true},   {"IQ1_S", 256, true},
                 {"IQ1_M", 256, true}};
  EXPECT_EQ(std::size(formats), std::size(kBlockFormats));
  for (const auto& f : formats) {
    SCOPED_TRACE(f.name);
    std::string lower = f.name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    const auto type = dtype_named(lower);
    ASSERT_TRUE(type);
    if (!f.searched) check_golden_blocks(q, f.name, *type);
    const Tensor all = rows_to_encode(f.block, cpu), there = all.to(q);
    const Tensor got = there.to(*type);
    ASSERT_TRUE(got.ok()) << got.error().message;
    const std::vector<size_t> none;
    EXPECT_EQ(different_blocks(got, all.to(*type), 36), none);
    // An odd number of blocks, in other orders and formats.
    EXPECT_EQ(
        different_blocks(there.flip(0).narrow(1, 0, 5).to(*type), all.flip(0).narrow(1, 0, 5).to(*type), 15),
        none);
    EXPECT_EQ(different_blocks(there.to(DType::F16).to(*type), all.to(DType::F16).to(*type), 36), none);
    // Far from 0 for their range: sums of offsets cancel, and need double precision.
    const Tensor far = Generator(9, cpu).normal({200, f.block}) * 0.001f + 5;
    EXPECT_EQ(different_blocks(far.to(q).to(*type), far.to(*type), 200), none);
    check_weighted_bits(q, *type, f.block);
  }
}

inline void check_products_with_blocks(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  Generator g(3, cpu);
  const Tensor w = g.normal({5, 19, 256}), x = g.normal({4, 256}), each = g.normal({4, 3, 256});
  const Tensor ids = Tensor::from<int64_t>({0, 4, 2, 2, 1, 1, 3, 0, 4, 4, 4, 4}, {4, 3}, cpu);
  for (DType type : {DType::F32, DType::Q8_0, DType::Q4_K, DType::IQ3_XXS}) {
    SCOPED_TRACE(name_of(type));
    const TensorFunction f = [](std::span<const Tensor> in) {
      return std::vector{linear(in[1], in[0].select(0, 3)), linear(in[1].flip(0), in[0].select(0, 1)),
                         linear_indexed(in[1], in[0], in[3]),
                         linear_indexed(in[2].flip(1), in[0], in[3].flip(0)),
                         linear_indexed(in[1], in[0].narrow(0, 1, 4), in[3].map("minimum", 3))};
    };
    const Tensor matrices = w.to(type);
    const std::vector<Tensor> here = {matrices, x, each, ids};
    std::vector<Tensor> there;
    for (const Tensor& t : here) there.push_back(t.to(q));
    auto want = f(here), got = f(there), later = record(q, f).run(there);
    ASSERT_TRUE(want);
    ASSERT_TRUE(got);
    ASSERT_TRUE(later) << later.error().message;
    for (size_t i = 0; i < want->size(); i++) {
      EXPECT_EQ(bits_of((*got)[i]), bits_of((*want)[i])) << "result " << i;
      EXPECT_EQ(bits_of((*later)[i]), bits_of((*want)[i])) << "recorded result " << i;
    }
  }
  const Tensor halves[] = {x.to(DType::BF16), w.to(DType::BF16)};
  EXPECT_EQ(bits_of(linear_indexed(halves[0].to(q), halves[1].to(q), ids.to(q))),
            bits_of(linear_indexed(halves[0], halves[1], ids)));
  EXPECT_EQ(linear_indexed(x.to(q), w.to(q), (ids + 1).to(q)).error().reason, "index");
}

inline double largest_of(const Tensor& t) {
  const auto v = t.values<float>();
  EXPECT_TRUE(v) << v.error().message;
  double most = 0;
  for (float x : v ? *v : std::vector<float>{NAN})
    most = std::isnan(x) ? INFINITY : std::max(most, std::fabs(double(x)));
  return most;
}
// NumPy's factors and solutions, and the bits of the CPU, of matrices in views.
inline void check_factors(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  const auto data = read_json(GIMBAL_SOURCE_DIR "/tests/data/linear_algebra.json");
  ASSERT_GE(data["cases"].size(), 4u);
  for (const auto& c : data["cases"]) {
    const int64_t m = c["m"], n = c["n"], columns = c["columns"], k = std::min(m, n);
    SCOPED_TRACE(testing::Message() << m << " x " << n);
    const auto given = [&](const char* name, const Dims& dims) {
      const auto v = c[name].get<std::vector<double>>();
      return Tensor::from<double>(v, dims, cpu).to(DType::F32).to(q);
    };
    const Tensor lower = given("lower", {n, n}), b = given("b", {n, columns});
    EXPECT_LE(largest_of(cholesky(given("spd", {n, n})) - lower) / largest_of(lower), 3e-5);
    EXPECT_LE(largest_of(solve_triangular(lower, b) - given("x", {n, columns})), 3e-5);
    EXPECT_LE(largest_of(solve_triangular(lower.t(), b, {.upper = true}) - given("x_upper", {n, columns})),
              3e-5);
    const auto [ortho, r] = qr(given("a", {m, n}));
    const Tensor want_q = given("q", {m, k}), want_r = given("r", {k, n}),
                 signs = (ortho * want_q).sum({0}).map("sign");
    EXPECT_LE(largest_of(ortho - want_q * signs), 3e-5);
    EXPECT_LE(largest_of(r - want_r * signs.unsqueeze(1)), 3e-5 * std::max(1.0, largest_of(want_r)));
  }
  for (const Dims& d : std::vector<Dims>{{1, 1}, {1, 5}, {5, 1}, {23, 9}, {9, 23}, {2, 3, 9, 9}, {34, 33}}) {
    const TensorFunction f = [](std::span<const Tensor> in) {
      const Tensor& a = in[0];
      const Tensor spd = a.matmul(a.t()) + in[1], l = cholesky(spd),
                   reversed = cholesky(spd.flip(-1).flip(-2), true);
      const auto [ortho, r] = qr(a);
      const auto [turned, s] = qr(a.t().flip(-1));
      return std::vector{l,
                         reversed,
                         ortho,
                         r,
                         turned,
                         s,
                         solve_triangular(l, a),
                         solve_triangular(l.t(), a.flip(-1), {.upper = true, .unit_diagonal = true})};
    };
    const int64_t rows = d[d.size() - 2];
    const std::vector<Tensor> here = {Generator(uint64_t(d[0]), cpu).normal(d),
                                      Tensor::eye(rows, DType::F32, cpu) * double(rows)};
    const std::vector<Tensor> there = {here[0].to(q), here[1].to(q)};
    auto want = f(here), got = f(there), later = record(q, f).run(there);
    ASSERT_TRUE(want);
    ASSERT_TRUE(got);
    ASSERT_TRUE(later) << later.error().message;
    for (size_t i = 0; i < want->size(); i++) {
      EXPECT_EQ(bits_of((*got)[i]), bits_of((*want)[i]))
          << d[0] << " x ... x " << d.back() << ", result " << i;
      EXPECT_EQ(bits_of((*later)[i]), bits_of((*want)[i])) << "recorded result " << i;
    }
  }
  const Tensor bad = Tensor::from<float>({1, 0, 0, -1, 2, 0, 0, 2}, {2, 2, 2}, q);
  EXPECT_EQ(cholesky(bad).error().reason, "not-positive-definite");
}

namespace {

TEST_P(TensorsOnDevice, DecodeBlocksAsTheCpuDoes) { check_decoded_bits(where()); }
TEST_P(TensorsOnDevice, EncodeBlocksAsGgmlDoes) { check_encoded_bits(where()); }
TEST_P(TensorsOnDevice, MultiplyBlocksAsTheCpuDoes) { check_products_with_blocks(where()); }
TEST_P(TensorsOnDevice, FactorMatricesAsTheCpuDoes) { check_factors(where()); }

}  // namespace
}  // namespace gimbal::test
