// Recorded functions: the bits of the same calls one by one, plan and reasons before anything runs,
// signatures, errors, what is bound and what is frozen.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include <gimbal/recorded.h>

#include "support/golden.h"
#include "tensors/random_program.h"

namespace gimbal::test {
namespace {

Queue queue_with(const char* variant = "", int threads = 0) {
  QueueOptions o;
  o.cpu_variant = variant, o.threads = threads;
  auto q = open_queue("cpu", o);
  EXPECT_TRUE(q) << q.error().message;
  return *q;
}

Tensor numbers(const Dims& dims, uint64_t seed, const Queue& q) { return Generator(seed, q).normal(dims); }

std::vector<std::byte> bits(const Tensor& t) {
  auto b = t.bytes();
  EXPECT_TRUE(b) << b.error().message;
  return b ? *b : std::vector<std::byte>();
}

TEST(Recorded, ComputesWhatTheCallsCompute) {
  const Queue q = queue_with();
  const Tensor w = numbers({5, 3}, 1, q), b = numbers({3}, 2, q);
  auto layer = [&](std::span<const Tensor> in) {
    return std::vector{(in[0].matmul(w) + b).map("gelu").softmax(-1)};
  };
  auto f = record(q, {{DType::F32, {4, 5}}}, layer);
  ASSERT_TRUE(f) << f.error().message;
  for (uint64_t seed : {3u, 4u}) {
    const std::vector<Tensor> x = {numbers({4, 5}, seed, q)};
    auto y = f->run(x);
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ(bits((*y)[0]), bits(layer(x)[0]));
  }
  EXPECT_EQ(f->signatures(), 1u);
}

TEST(Recorded, HasPlanAndReasonsBeforeAnythingRuns) {
  const Queue q = queue_with();
  auto f = record(q, {{DType::F32, {256, 64}}}, [](std::span<const Tensor> in) {
    Tensor x = in[0];
    for (int i = 0; i < 8; i++) x = x.cumsum(-1).t().contiguous().t() + 1.0;
    return std::vector{x.sum()};
  });
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(q.counts().operations, 0u);
  EXPECT_EQ(q.memory().peak, 0u) << "nothing was allocated";
  const auto plan = f->plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->arguments, 256u * 64 * 4);
  EXPECT_EQ(plan->results, 4u);
  EXPECT_EQ(plan->operations, 25u);
  EXPECT_EQ(plan->apart, 24u * 256 * 64 * 4);
  EXPECT_LE(plan->work, 3u * 256 * 64 * 4) << "values that are not needed at once share memory";
  const auto ops = f->explain();
  ASSERT_TRUE(ops);
  ASSERT_EQ(ops->size(), 25u);
  EXPECT_EQ((*ops)[0].op, "cumsum");
  EXPECT_EQ((*ops)[0].inputs, std::vector<std::string>{"f32[256, 64]"});
  for (const RecordedOperation& o : *ops) {
    EXPECT_EQ(o.kernel.rfind("cpu.", 0), 0u) << o.kernel;
    EXPECT_FALSE(o.why.empty());
  }
  EXPECT_FALSE((*ops)[24].rejected.empty()) << "reduce.f64 and others do not fit";
  EXPECT_EQ(f->receipt()[0].runs, 0u);
  const std::vector<Tensor> x = {numbers({256, 64}, 1, q)};
  ASSERT_TRUE(f->run(x));
  ASSERT_TRUE(f->run(x));
  uint64_t runs = 0;
  for (const ReceiptLine& l : f->receipt()) runs += l.runs;
  EXPECT_EQ(runs, 50u) << "counted by the device";
}

TEST(Recorded, RandomProgramsHaveTheBitsOfTheirCalls) {
  const Queue one = queue_with("", 1), three = queue_with("", 3), plain = queue_with("baseline", 2);
  for (uint64_t seed = 0; seed < (fewer_cases() ? 15 : 60); seed++) {
    const RandomProgram program(seed);
    const TensorFunction f = [&](std::span<const Tensor> in) { return program.run(in); };
    std::optional<std::vector<std::vector<std::byte>>> want[2];
    for (const Queue* q : {&one, &three, &plain}) {
      const Recorded recorded = record(*q, f);
      for (int round = 0; round < 2; round++) {
        const std::vector<Tensor> in = program.arguments(seed * 2 + uint64_t(round), *q);
        const std::vector<Tensor> direct = program.run(in);
        auto y = recorded.run(in);
        ASSERT_TRUE(y) << y.error().message << " in program " << seed;
        ASSERT_EQ(y->size(), direct.size());
        std::vector<std::vector<std::byte>> got;
        for (size_t i = 0; i < direct.size(); i++) {
          got.push_back(bits((*y)[i]));
          EXPECT_EQ((*y)[i].dims(), direct[i].dims());
          ASSERT_EQ(got[i], bits(direct[i])) << "result " << i << " of program " << seed;
        }
        if (!want[round]) want[round] = std::move(got);
        else ASSERT_EQ(*want[round], got) << "program " << seed << " on another instruction set";
      }
      EXPECT_EQ(recorded.signatures(), 1u);
    }
  }
}

TEST(Recorded, EachSignatureIsRecordedOnce) {
  const Queue q = queue_with();
  int recordings = 0;
  const Recorded f = record(q, [&](std::span<const Tensor> in) {
    recordings++;
    return std::vector{in[0] * 2, in[0].t(), in[0]};
  });
  const Tensor x = numbers({4, 6}, 1, q);
  for (const Tensor& t : {x, x.t(), x.to(DType::F16), x, x.t(), x.narrow(0, 1, 2), x * 3}) {
    const std::vector<Tensor> in = {t};
    auto y = f.run(in);
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ(bits((*y)[0]), bits(t * 2));
    EXPECT_EQ(bits((*y)[1]), bits(t.t()));
    EXPECT_TRUE((*y)[2].shares_memory_with(t)) << "an argument that is returned is itself";
  }
  EXPECT_EQ(recordings, 4);
  EXPECT_EQ(f.signatures(), 4u);
}

TEST(Recorded, TensorsFromOutsideAreBoundAndNotWritten) {
  const Queue q = queue_with();
  const Tensor state = Tensor::full({3}, 1, DType::F32, q);
  const Recorded f = record(q, [&](std::span<const Tensor> in) { return std::vector{in[0] + state}; });
  const std::vector<Tensor> x = {Tensor::full({3}, 10, DType::F32, q)};
  EXPECT_EQ(*(*f.run(x))[0].values<float>(), (std::vector<float>{11, 11, 11}));
  ASSERT_TRUE(state.fill_(5));
  EXPECT_EQ(*(*f.run(x))[0].values<float>(), (std::vector<float>{15, 15, 15}));
  const Recorded writes = record(q, [&](std::span<const Tensor> in) {
    const Status done = state.copy_(in[0]);
    EXPECT_FALSE(done);
    EXPECT_FALSE(in[0].fill_(1)) << "an argument";
    const Tensor own = in[0].copy();
    EXPECT_TRUE(own.narrow(0, 1, 1).fill_(7));
    return std::vector{own};
  });
  EXPECT_EQ(*(*writes.run(x))[0].values<float>(), (std::vector<float>{10, 7, 10}));
  EXPECT_EQ(*x[0].values<float>(), (std::vector<float>{10, 10, 10}));
}

TEST(Recorded, ErrorsAreThoseOfTheCalls) {
  const Queue q = queue_with();
  const auto shapes = record(q, {{DType::F32, {2, 3}}},
                             [](std::span<const Tensor> in) { return std::vector{in[0].matmul(in[0])}; });
  ASSERT_FALSE(shapes);
  EXPECT_EQ(shapes.error().reason, reason::kShape);
  const auto reads = record(q, {{DType::F32, {3}}}, [](std::span<const Tensor> in) {
    auto v = in[0].values<float>();
    EXPECT_FALSE(v);
    EXPECT_EQ(in[0].host(), nullptr);
    EXPECT_NE(in[0].text().find("f32[3]"), std::string::npos);
    return std::vector{Tensor::full({2}, v ? 1 : 0, DType::F32, in[0].queue()) + in[0].narrow(0, 0, 2)};
  });
  EXPECT_TRUE(reads);
  const auto ids = record(q, {{DType::F32, {4, 2}}, {DType::I32, {3}}}, [](std::span<const Tensor> in) {
    return std::vector{in[0].index_select(in[1], 0)};
  });
  ASSERT_TRUE(ids) << ids.error().message;
  const Tensor x = numbers({4, 2}, 1, q);
  std::vector<Tensor> in = {x, Tensor::from<int32_t>({3, 0, 3}, {3}, q)};
  EXPECT_EQ(bits((*ids->run(in))[0]), bits(x.index_select(in[1], 0)));
  in[1] = Tensor::from<int32_t>({3, 4, -1}, {3}, q);
  const auto bad = ids->run(in);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, reason::kIndex);
  EXPECT_EQ(bad.error().message, x.index_select(in[1], 0).error().message);
}

TEST(Recorded, ATensorOfTheFunctionHasNoValuesElsewhere) {
  const Queue q = queue_with();
  std::optional<Tensor> kept;
  const Recorded f = record(q, [&](std::span<const Tensor> in) {
    kept = in[0] + 1;
    return std::vector{*kept};
  });
  const std::vector<Tensor> x = {numbers({3}, 1, q)};
  ASSERT_TRUE(f.run(x));
  EXPECT_EQ((*kept + 1).error().reason, "recorded");
  EXPECT_FALSE(kept->values<float>());
  const std::vector<Tensor> in = {*kept};
  EXPECT_FALSE(f.run(in));
  const Recorded other = record(q, [&](std::span<const Tensor>) { return std::vector{*kept * 2}; });
  EXPECT_FALSE(other.run(x));
  const Recorded same = record(q, [&](std::span<const Tensor>) { return std::vector{*kept}; });
  const auto returned = same.run(x);
  ASSERT_FALSE(returned);
  EXPECT_EQ(returned.error().reason, "recorded");
}

TEST(Recorded, FunctionsOfFunctions) {
  const Queue q = queue_with();
  const Recorded inner = record(q, [](std::span<const Tensor> in) { return std::vector{in[0] * in[0]}; });
  const Recorded outer = record(q, [&](std::span<const Tensor> in) { return *inner.run(in); });
  const std::vector<Tensor> x = {numbers({7}, 1, q)};
  EXPECT_EQ(bits((*outer.run(x))[0]), bits(x[0] * x[0]));
  EXPECT_EQ(inner.signatures(), 0u) << "it became a part of the outer one";
}

TEST(Recorded, ThreadsShareOne) {
  const Queue q = queue_with();
  const Recorded f = record(
      q, [](std::span<const Tensor> in) { return std::vector{(in[0].t() + 1.0).map("exp").t().sum({0})}; });
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t i = 0; i < wrong.size(); i++)
    threads.emplace_back([&, i] {
      for (uint64_t k = 0; k < 30; k++) {
        const std::vector<Tensor> x = {numbers({5 + int64_t(k % 3), 4}, k, q)};
        const Tensor want = (x[0].t() + 1.0).map("exp").t().sum({0});
        auto y = f.run(x);
        wrong[i] += !y || *(*y)[0].bytes() != *want.bytes();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
  EXPECT_EQ(f.signatures(), 3u);
}

}  // namespace
}  // namespace gimbal::test
