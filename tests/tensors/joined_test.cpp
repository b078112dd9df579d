// Ops by element that a recorded function computes together, part by part: the bits of the calls one by one,
// for every instruction set, number of threads, format and length; and where each result goes, with the
// reason.
#include <gtest/gtest.h>

#include <random>

#include <gimbal/recorded.h>

#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr int64_t kPart = 2048;  // elements: backends/cpu/tensors/grain.h

std::vector<std::byte> bits(const Tensor& t) {
  auto b = t.bytes();
  EXPECT_TRUE(b) << b.error().message;
  return b ? *b : std::vector<std::byte>();
}

// Random functions of ops by element, mostly of whole neighbours, with what ends a chain now and then:
// another reader, a view, a sum, a result.
class RandomChain {
 public:
  explicit RandomChain(uint64_t seed) : seed_(seed) {
    std::mt19937_64 random(seed);
    constexpr int64_t kRows[] = {1, 1, 3, 5},
                      kColumns[] = {1, 17, kPart / 2, kPart - 1, kPart, kPart + 1, 3 * kPart + 5};
    dims_ = {kRows[random() % std::size(kRows)], kColumns[random() % std::size(kColumns)]};
  }

  std::vector<Tensor> arguments(uint64_t seed, const Queue& q) const {
    Generator g(seed, q);
    return {g.normal(dims_), g.normal({dims_[1], dims_[0]}).t(), g.normal({dims_[1]}),
            (g.normal(dims_) * 50).to(DType::I32)};
  }

  std::vector<Tensor> run(std::span<const Tensor> in) const {
    std::mt19937_64 random(seed_);
    std::vector<Tensor> all(in.begin(), in.end()), results;
    Tensor x = in[random() % 2];
    for (int step = 0; step < 16; step++) {
      const Tensor other = all[random() % all.size()];
      x = next(x, other, random());
      EXPECT_TRUE(x.ok()) << x.error().message;
      all.push_back(x);
      if (random() % 8 == 0) results.push_back(x);
      if (random() % 8 == 0) results.push_back(x.sum({0}));
      if (random() % 6 == 0) x = all[random() % all.size()];
    }
    results.push_back(x);
    return results;
  }

 private:
  static Tensor next(const Tensor& x, const Tensor& y, uint64_t n) {
    static constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64,
                                       DType::I64, DType::I32, DType::U8,   DType::Bool};
    static constexpr const char* kOne[] = {"relu", "neg", "abs", "sqr", "sign"};
    static constexpr const char* kFloats[] = {"exp", "gelu", "tanh", "floor", "is_nan", "sigmoid"};
    static constexpr const char* kTwo[] = {"add", "sub", "mul", "maximum", "lt", "floor_div", "remainder"};
    const bool truth = x.dtype() == DType::Bool,
               whole = truth || x.dtype() == DType::I64 || x.dtype() == DType::I32 || x.dtype() == DType::U8;
    const uint64_t which = n % 16, more = n / 16;
    if (which < 3) return x.to(kTypes[more % std::size(kTypes)]);
    if (which < 6)
      return truth ? where(x, y.to(DType::F32) * 1.5, y.to(DType::F16)) : x.map(kOne[more % std::size(kOne)]);
    if (which < 8) return x.to(whole ? DType::F32 : x.dtype()).map(kFloats[more % std::size(kFloats)]);
    if (which < 11)
      return x.to(truth ? DType::I32 : x.dtype()).map(kTwo[more % std::size(kTwo)], double(more % 7) / 2 - 1);
    if (which == 11) return x.map("lt", 0.25);
    if (which == 12) return x.flip(-1).map("maximum", y);
    if (which == 13) return x.reshape({-1}).map("ge", 0).reshape(x.dims());
    return (x.to(truth ? DType::F32 : x.dtype()))
        .map(kTwo[more % std::size(kTwo)], truth || y.dtype() == DType::Bool ? y.to(DType::F32) : y);
  }

  uint64_t seed_;
  Dims dims_;
};

struct Case {
  std::string name;
  Queue queue;
};
std::vector<Case> every_processor() {
  std::vector<Case> all;
  for (const char* variant : {"", "baseline", "avx2", "avx512", "neon"})
    for (int threads : {1, 3}) {
      QueueOptions o;
      o.threads = threads, o.cpu_variant = variant;
      if (auto q = open_queue("cpu", o))
        all.push_back({std::string(variant) + " with " + std::to_string(threads), *q});
    }
  EXPECT_GE(all.size(), 4u) << "the best variant and the baseline";
  return all;
}

TEST(Joined, RandomChainsHaveTheBitsOfTheirCalls) {
  const std::vector<Case> cases = every_processor();
  uint64_t joined = 0, in_memory = 0;
  const uint64_t seeds = fewer_cases() ? 10 : 24;
  for (uint64_t seed = 0; seed < seeds; seed++) {
    const RandomChain chain(seed);
    std::vector<std::vector<std::byte>> want;
    for (const Case& c : cases) {
      const Recorded f = record(c.queue, [&](std::span<const Tensor> in) { return chain.run(in); });
      const std::vector<Tensor> in = chain.arguments(seed, c.queue), direct = chain.run(in);
      auto y = f.run(in);
      ASSERT_TRUE(y) << y.error().message << " in chain " << seed;
      ASSERT_EQ(y->size(), direct.size());
      std::vector<std::vector<std::byte>> got;
      for (size_t i = 0; i < direct.size(); i++) {
        got.push_back(bits((*y)[i]));
        ASSERT_EQ(got[i] == bits(direct[i]), true)
            << "result " << i << " of chain " << seed << ", " << c.name;
      }
      if (want.empty()) want = std::move(got);
      else ASSERT_EQ(want == got, true) << "chain " << seed << ", " << c.name;
      auto ops = f.explain(in);
      ASSERT_TRUE(ops);
      for (const RecordedOperation& o : *ops) {
        joined += o.why.find("takes no memory") != std::string::npos;
        in_memory += o.why.find("goes to memory") != std::string::npos;
      }
    }
  }
  EXPECT_GT(joined, 3 * seeds * cases.size()) << "of the chains' ops";
  EXPECT_GT(in_memory, 3 * seeds * cases.size());
}

std::vector<std::string> reasons(const Recorded& f) {
  auto ops = f.explain();
  EXPECT_TRUE(ops) << ops.error().message;
  std::vector<std::string> all;
  for (const RecordedOperation& o : *ops) {
    const size_t at = o.why.find("; ");
    all.push_back(at == std::string::npos ? "" : o.why.substr(at + 2));
  }
  return all;
}

TEST(Joined, PlanAndReasonsTellWhereResultsGo) {
  auto q = open_queue("cpu");
  ASSERT_TRUE(q);
  auto maps = record(*q, {{DType::F32, {100, 100}}}, [](std::span<const Tensor> in) {
    return std::vector{((in[0] * 0.5 + 1).map("relu")).to(DType::F16)};
  });
  ASSERT_TRUE(maps) << maps.error().message;
  EXPECT_EQ(reasons(*maps),
            (std::vector<std::string>{
                "its result takes no memory: operations 0 to 1 are computed together, part by part",
                "its result takes no memory: operations 1 to 2 are computed together, part by part",
                "its result takes no memory: operations 2 to 3 are computed together, part by part",
                "its result goes to memory: it is a result of the function"}));
  auto plan = maps->plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->work, 0u);
  EXPECT_EQ(plan->apart, 3u * 10000 * 4);
  EXPECT_EQ(plan->results, 10000u * 2);

  // Two readers: both in the chain; one that needs the whole; one that reads another order.
  auto fans = record(*q, {{DType::F32, {64, 64}}}, [](std::span<const Tensor> in) {
    const Tensor a = in[0] * 2, b = a + a.map("exp"), c = b * 3, d = c + 1, e = d + d.t();
    return std::vector{c.sum(), d, e};
  });
  ASSERT_TRUE(fans) << fans.error().message;
  EXPECT_EQ(
      reasons(*fans),
      (std::vector<std::string>{
          "its result takes no memory: operations 0 to 2 are computed together, part by part",
          "its result takes no memory: operations 1 to 2 are computed together, part by part",
          "its result takes no memory: operations 2 to 3 are computed together, part by part",
          "its result goes to memory: operation 6 reads it, and reduce is not computed element by element",
          "its result goes to memory: it is a result of the function",
          "its result goes to memory: it is a result of the function", ""}));
}

TEST(Joined, ATransposedReaderNeedsTheWhole) {
  auto q = open_queue("cpu");
  ASSERT_TRUE(q);
  const auto f = [](std::span<const Tensor> in) { return std::vector{(in[0] * 2).t() + 1}; };
  auto recorded = record(*q, {{DType::F32, {70, 70}}}, f);
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(reasons(*recorded)[0],
            "its result goes to memory: operation 1 reads it in another order, or a part of it");
  const std::vector<Tensor> in = {Generator(1, *q).normal({70, 70})};
  auto y = recorded->run(in);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(bits((*y)[0]) == bits(f(in)[0]), true);
}

// A result in memory must not lie where an operand of the same part is still read, which takes half as much
// per element.
TEST(Joined, ResultsInMemoryDoNotOverwriteWhatLaterPartsRead) {
  for (int threads : {1, 3}) {
    QueueOptions o;
    o.threads = threads;
    auto q = open_queue("cpu", o);
    ASSERT_TRUE(q);
    const auto f = [](std::span<const Tensor> in) {
      const Tensor sums = in[0].cumsum(0), wide = (sums * 2).to(DType::F64);
      return std::vector{wide.map("exp"), wide.sum()};
    };
    const Recorded recorded = record(*q, f);
    const std::vector<Tensor> in = {Generator(1, *q).normal({20 * kPart + 3})}, want = f(in);
    auto y = recorded.run(in);
    ASSERT_TRUE(y) << y.error().message;
    for (size_t i = 0; i < want.size(); i++) EXPECT_EQ(bits((*y)[i]) == bits(want[i]), true) << i;
  }
}

}  // namespace
}  // namespace gimbal::test
