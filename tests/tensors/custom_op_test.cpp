// Operations of a program's own: results, views, parts, in place, errors, recording, verification, fallback.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <stdexcept>

#include <gimbal/custom_op.h>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class CustomOps : public OnCpuQueue {
 protected:
  static Custom made(CustomOp op) {
    auto c = custom_op(std::move(op));
    EXPECT_TRUE(c) << c.error().message;
    return *c;
  }
};

// x * 2 + y, of f32.
CustomOp doubled_sum(int64_t each = 0) {
  CustomOp op;
  op.name = "doubled_sum", op.inputs = 2, op.elements_per_part = each;
  op.cpu = [each](std::span<const HostView> in, const HostTarget& out, Part part) -> Status {
    const int64_t n = out.count(), begin = each ? part.index * each : 0, end = each ? begin + each : n;
    for (int64_t i = begin; i < std::min(end, n); i++)
      out.at<float>(i) = 2 * in[0].at<float>(i) + in[1].at<float>(i);
    return Done{};
  };
  op.reference = [](std::span<const ReferenceValues> in) -> Result<ReferenceValues> {
    ReferenceValues y = in[0];
    for (size_t i = 0; i < y.values.size(); i++) y.values[i] = 2 * y.values[i] + in[1].values[i];
    return y;
  };
  return op;
}

TEST_F(CustomOps, AreRowsOfTheTableThatAreCounted) {
  const Custom op = made(doubled_sum());
  const Tensor x = Tensor::arange(0, 6, 1, DType::F32, *queue).reshape({2, 3}), y = x.flip(1);
  EXPECT_EQ(*op({x, y}).values<float>(), (std::vector<float>{2, 3, 4, 11, 12, 13}));
  EXPECT_EQ(*op({x.t(), y.t()}).values<float>(), (std::vector<float>{2, 11, 3, 12, 4, 13}));
  bool counted = false;
  for (const auto& [kernel, n] : queue->receipt())
    if (kernel == "cpu.custom.doubled_sum") counted = n == 2;
  EXPECT_TRUE(counted);
}

TEST_F(CustomOps, ThreadsComputeParts) {
  QueueOptions o;
  o.threads = 3;
  const auto three = open_queue("cpu", o);
  ASSERT_TRUE(three);
  const Custom op = made(doubled_sum(1000));
  const Tensor x = Generator(1, *three).normal({20, 521});
  EXPECT_EQ(*op({x, x}).bytes(), *(x * 3).bytes());
}

TEST_F(CustomOps, HaveAsManyPartsAsTheirResultNeeds) {
  struct Case {
    int64_t elements, each, parts;
  };
  for (const Case& c : {Case{10, 5, 2}, {11, 5, 3}, {9, 5, 2}, {1, 5, 1}, {5, 5, 1}, {4, 1, 4}, {7, 0, 1}}) {
    std::mutex mutex;
    std::multiset<int64_t> indices, counts;
    CustomOp op;
    op.name = "counted", op.elements_per_part = c.each;
    op.cpu = [&](std::span<const HostView>, const HostTarget&, Part part) -> Status {
      const std::lock_guard lock(mutex);
      indices.insert(part.index), counts.insert(part.count);
      return Done{};
    };
    ASSERT_TRUE(made(op)({Tensor::zeros({c.elements}, DType::F32, *queue)}).values<float>());
    std::multiset<int64_t> each_once;
    for (int64_t i = 0; i < c.parts; i++) each_once.insert(i);
    EXPECT_EQ(indices, each_once) << c.elements << " elements, " << c.each << " in a part";
    EXPECT_EQ(counts.count(c.parts), counts.size());
  }
}

TEST_F(CustomOps, OfTwoKindsMeetInOneRecordedFunction) {
  const Custom sum = made(doubled_sum());
  CustomOp counts;
  counts.name = "count_above";
  counts.output = [](std::span<const Spec> in) -> Result<Spec> { return Spec{DType::I64, {in[0].dims[0]}}; };
  counts.cpu = [](std::span<const HostView> in, const HostTarget& out, Part) -> Status {
    const int64_t n = in[0].count() / out.count();
    for (int64_t row = 0; row < out.count(); row++) {
      out.at<int64_t>(row) = 0;
      for (int64_t i = 0; i < n; i++) out.at<int64_t>(row) += in[0].at<float>(row * n + i) > 0;
    }
    return Done{};
  };
  const Custom above = made(counts);
  const TensorFunction f = [&](std::span<const Tensor> in) {
    return std::vector{above({sum({in[0].t(), in[1]}).map("tanh")})};
  };
  auto recorded = record(*queue, {{DType::F32, {5, 4}}, {DType::F32, {4, 5}}}, f);
  ASSERT_TRUE(recorded) << recorded.error().message;
  const auto ops = recorded->explain();
  ASSERT_TRUE(ops);
  EXPECT_EQ((*ops)[0].kernel, "cpu.custom.doubled_sum");
  EXPECT_EQ((*ops)[2].kernel, "cpu.custom.count_above");
  EXPECT_EQ((*ops)[2].output, "i64[4]");
  const std::vector<Tensor> in = {Generator(1, *queue).normal({5, 4}), Generator(2, *queue).normal({4, 5})};
  EXPECT_EQ(*(*recorded->run(in))[0].values<int64_t>(), *(*f(in))[0].values<int64_t>());
}

TEST_F(CustomOps, InPlaceWriteThroughViews) {
  CustomOp op;
  op.name = "add_to", op.inputs = 2, op.in_place = true;
  op.cpu = [](std::span<const HostView> in, const HostTarget& out, Part) -> Status {
    for (int64_t i = 0; i < out.count(); i++) out.at<float>(i) += in[0].at<float>(i);
    return Done{};
  };
  const Custom add = made(op);
  const Tensor x = Tensor::zeros({3, 2}, DType::F32, *queue);
  ASSERT_TRUE(
      add({x.t().narrow(1, 2, 2, -1), Tensor::arange(1, 5, 1, DType::F32, *queue).reshape({2, 2})}).ok());
  EXPECT_EQ(*x.values<float>(), (std::vector<float>{0, 0, 2, 4, 1, 3}));
  ASSERT_TRUE(add({x, x}).ok()) << "an operand that overlaps is read first";
  EXPECT_EQ(*x.values<float>(), (std::vector<float>{0, 0, 4, 8, 2, 6}));
  const Tensor overlapping = Tensor::zeros({1}, DType::F32, *queue).broadcast_to({3});
  EXPECT_FALSE(add({overlapping, overlapping.copy()}).ok());
}

TEST_F(CustomOps, ErrorsOfTheFunctionFailTheCall) {
  CustomOp op;
  op.name = "picky";
  std::atomic<int> throws = 0;
  op.cpu = [&](std::span<const HostView> in, const HostTarget& out, Part) -> Status {
    if (throws) throw std::runtime_error("thrown");
    if (in[0].at<float>(0) < 0) return Error{Code::Usage, "negative", "", "", "", "", "", {}};
    out.at<float>(0) = in[0].at<float>(0);
    return Done{};
  };
  const Custom picky = made(op);
  const Tensor good = Tensor::full({1}, 2, DType::F32, *queue),
               bad = Tensor::full({1}, -2, DType::F32, *queue);
  EXPECT_EQ(picky({bad}).error().message, "custom op 'picky': negative");
  EXPECT_EQ(*picky({good}).values<float>(), (std::vector<float>{2})) << "the error is gone";
  throws = 1;
  EXPECT_EQ(picky({good}).error().message, "custom op 'picky': thrown");
  throws = 0;
  const auto recorded = record(*queue, {{DType::F32, {1}}},
                               [&](std::span<const Tensor> in) { return std::vector{picky({in[0]}) + 1}; });
  ASSERT_TRUE(recorded);
  EXPECT_FALSE(recorded->run(std::span(&bad, 1)));
  EXPECT_TRUE(recorded->run(std::span(&good, 1)));
}

TEST_F(CustomOps, TheFunctionMustNotUseItsQueue) {
  CustomOp op;
  op.name = "nested";
  op.cpu = [&](std::span<const HostView>, const HostTarget& out, Part) -> Status {
    const Tensor one = Tensor::full({1}, 1, DType::F32, *queue);
    EXPECT_FALSE(one.ok());
    EXPECT_FALSE(queue->wait());
    out.at<float>(0) = 3;
    return one.ok() ? Status(Done{}) : one.error();
  };
  const Tensor y = made(op)({Tensor::full({1}, 1, DType::F32, *queue)});
  ASSERT_FALSE(y.ok());
  EXPECT_NE(y.error().message.find("uses tensors of the queue"), std::string::npos) << y.error().message;
}

TEST_F(CustomOps, MisuseIsRefused) {
  CustomOp op = doubled_sum();
  op.cpu = nullptr;
  EXPECT_FALSE(custom_op(op)) << "no function";
  op = doubled_sum();
  for (const char* name : {"", "Twice", "a b", "a.b"}) {
    op.name = name;
    EXPECT_FALSE(custom_op(op)) << name;
  }
  op.name = "fine", op.inputs = 8;
  EXPECT_FALSE(custom_op(op));
  op = doubled_sum();
  op.fallback = "metal";
  EXPECT_FALSE(custom_op(op)) << "the CPU is the only one to fall back to";
  op.cpu = nullptr, op.kernel = "STORE(y, at, 1.0f)", op.fallback = "";
  EXPECT_TRUE(custom_op(op)) << "a text needs no function";
  op.fallback = "cpu";
  const auto nothing_there = custom_op(op);
  ASSERT_FALSE(nothing_there);
  EXPECT_NE(nothing_there.error().message.find("the fallback to the CPU needs a function"), std::string::npos)
      << nothing_there.error().message;
  const Custom sum = made(doubled_sum());
  const Tensor x = Tensor::zeros({2}, DType::F32, *queue), none = Tensor::zeros({0}, DType::F32, *queue);
  EXPECT_EQ(sum({x}).error().reason, reason::kShape);
  EXPECT_EQ(sum({none, none}).error().reason, reason::kShape);
  EXPECT_FALSE(sum({}).ok());
  EXPECT_FALSE(sum({x, x.map("nothing")}).ok());
  op = doubled_sum();
  op.output = [](std::span<const Spec>) -> Result<Spec> { return Spec{DType::Q4_0, {32}}; };
  EXPECT_EQ(made(op)({x, x}).error().reason, reason::kDType);
}

TEST_F(CustomOps, AreVerifiedByTheirReference) {
  const auto verdict = made(doubled_sum()).verify(*queue);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->cases, 10);
  EXPECT_LE(verdict->largest_error, 1);
  CustomOp wrong = doubled_sum();
  wrong.reference = [](std::span<const ReferenceValues> in) -> Result<ReferenceValues> { return in[0]; };
  const auto no = made(wrong).verify(*queue);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().reason, "wrong-result");
  EXPECT_NE(no.error().message.find("element 0: expected"), std::string::npos) << no.error().message;
  wrong.reference = nullptr;
  EXPECT_EQ(made(wrong).verify(*queue).error().code, Code::Usage);
}

TEST_F(CustomOps, ManyAreAnErrorAndNoCrash) {
  const Tensor x = Tensor::zeros({2}, DType::F32, *queue);
  int fine = 0;
  std::string message;
  std::vector<Custom> all;
  for (int i = 0; i < 300; i++) {
    all.push_back(made(doubled_sum()));
    const Tensor y = all.back()({x, x});
    fine += y.ok();
    if (!y.ok()) message = y.error().message;
  }
  EXPECT_EQ(fine, 256);
  EXPECT_NE(message.find("256 kernels"), std::string::npos) << message;
  EXPECT_TRUE((x + 1).ok());
}

}  // namespace
}  // namespace gimbal::test
