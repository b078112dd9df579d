// The tests of kernel texts on a device whose runtime compiles them; after tensors_checks.h, like
// blocks_checks.h. Expected values are those of the CPU's tensor functions, bit for bit, and of doubles.
#pragma once
#include <cmath>

#include <gimbal/custom_op.h>

#include "gpu/tensors_checks.h"

namespace gimbal::test {

inline Custom text_op(const char* name, int inputs, const char* kernel) {
  CustomOp op;
  op.name = name, op.inputs = inputs, op.kernel = kernel;
  auto made = custom_op(op);
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}
inline bool counted(const Queue& q, const std::string& kernel) {
  for (const auto& [name, n] : q.receipt())
    if (name == kernel && n > 0) return true;
  return false;
}

// One operand to three, of all sizes around those of groups, dense and as views.
inline void check_texts_of_elements(const std::string& where) {
  const Queue q = queue_on(where);
  const Custom twice = text_op("twice", 1, "STORE(y, at, 2.0f * LOAD(x, at))"),
               mixed = text_op("mixed", 3, R"(
                 // Three operands; the product of the first two is rounded by itself.
                 LET(f32, product) = ROUNDED(LOAD(x0, at) * LOAD(x1, at));
                 STORE(y, at, product + LOAD(x2, at));)");
  for (const Dims& d : {Dims{1}, Dims{63}, Dims{64, 65}, Dims{3, 5, 1025}, Dims{1000003}}) {
    Generator g(uint64_t(d[0]), q);
    const Tensor a = g.normal(d), b = g.normal(d), c = g.normal(d), r = b.flip(0);
    ASSERT_TRUE(twice({a}).ok()) << twice({a}).error().message;
    EXPECT_EQ(bits_of(twice({a})), bits_of(a * 2));
    EXPECT_EQ(bits_of(mixed({a, b, c})), bits_of(a * b + c));
    EXPECT_EQ(bits_of(mixed({a, r, r})), bits_of(a * r + r)) << "a view, and one operand twice";
  }
  EXPECT_TRUE(counted(q, backend_of(where) + ".custom.mixed"));
}

// Functions of the dialect have the bits of the tensor library's; halves are computed in f32.
inline void check_texts_with_functions(const std::string& where) {
  const Queue q = queue_on(where);
  const Custom exp = text_op("exponential", 1, "STORE(y, at, EXP(LOAD(x, at)));"),
               chosen = text_op("chosen", 1, R"(
                 VAR(f32, v) = LOAD(x, at);
                 if (v < 0.0f) { v = SIN(v); } else { v = LOG(v + 1.0f); }
                 STORE(y, at, SELECT(at == 0u, SQRT(2.0f), v));)");
  const Tensor x = Generator(5, q).normal({70, 33}) * 4;
  EXPECT_EQ(bits_of(exp({x})), bits_of(x.map("exp")));
  const Tensor y = gimbal::where(x.map("lt", Scalar(0)), x.map("sin"), (x + 1).map("log"));
  EXPECT_EQ(bits_of(chosen({x}).narrow(0, 1, 69)), bits_of(y.narrow(0, 1, 69)));
  EXPECT_EQ(chosen({x}).values<float>()->at(0), std::sqrt(2.0f));
  for (DType t : {DType::F16, DType::BF16}) {
    const Tensor half = x.to(t);
    EXPECT_EQ(exp({half}).dtype(), t);
    EXPECT_EQ(bits_of(exp({half})), bits_of(half.to(DType::F32).map("exp").to(t)));
  }
}

// Elements at other places, loops, dims, and a result of another form.
inline void check_texts_with_places(const std::string& where) {
  const Queue q = queue_on(where);
  CustomOp op;
  op.name = "row_sums";
  op.output = [](std::span<const Spec> in) -> Result<Spec> { return Spec{DType::F32, {in[0].dims[0]}}; };
  op.kernel = R"(
    VAR(f32, sum) = 0.0f;
    for (VAR(u32, i) = 0u; i < x_dim(1u); i += 1u) {
      sum += LOAD(x, (at * x_dim(1u)) + i);
    }
    STORE(y, at, sum + (1000.0f * F32((x_rank * y_rank) * y_dim(0u)))))";
  op.reference = [](std::span<const ReferenceValues> in) -> Result<ReferenceValues> {
    const int64_t rows = in[0].dims[0], columns = in[0].dims[1];
    ReferenceValues y{{rows}, std::vector<double>(size_t(rows), 2000.0 * double(rows))};
    for (int64_t i = 0; i < rows * columns; i++) y.values[size_t(i / columns)] += in[0].values[size_t(i)];
    return y;
  };
  const auto sums = custom_op(op);
  ASSERT_TRUE(sums) << sums.error().message;
  const auto verdict = sums->verify(q, {{Spec{DType::F32, {7, 33}}}, {Spec{DType::F16, {65, 5}}}});
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->cases, 4);
  // Places from another operand; those beyond the end read the last element.
  const Custom taken = text_op("taken", 2, "STORE(y, at, LOAD(x1, U32(LOAD(x0, at))))");
  const Tensor ids = Tensor::from<float>({2, 0, 1, 99}, {4}, q), of = Tensor::from<float>({5, 6, 7}, {3}, q);
  EXPECT_EQ(*taken({ids, of}).values<float>(), (std::vector<float>{7, 5, 6, 7}));
  const auto f = record(q, [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{taken({in[0], in[1] + 1}) * 2};
  });
  const auto later = f.run(std::vector<Tensor>{ids, of});
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(*(*later)[0].values<float>(), (std::vector<float>{16, 12, 14, 16}));
}

inline void check_refused_texts(const std::string& where) {
  const Queue q = queue_on(where);
  const Tensor x = Tensor::from<float>({1, 1, 1, 1}, {4}, q);
  const auto message_of = [&](const char* kernel) {
    return text_op("refused", 1, kernel)({x}).error().message;
  };
  EXPECT_NE(
      message_of("\nSTORE(y, 0u, 1.0f)").find("line 2: STORE(y, 0u, ...): a text writes element `at` alone"),
      std::string::npos)
      << message_of("\nSTORE(y, 0u, 1.0f)");
  EXPECT_NE(message_of("STORE(y, at, LOAD(x7, at))").find("expected x, x0, x1 or x2"), std::string::npos);
  // The driver's compiler names what it does not know.
  EXPECT_NE(message_of("STORE(y, at, unknown_name)").find("unknown_name"), std::string::npos)
      << message_of("STORE(y, at, unknown_name)");
  const Tensor whole = text_op("of_integers", 1, "STORE(y, at, LOAD(x, at))")({x.to(DType::I32)});
  EXPECT_EQ(whole.error().reason, "no-kernel") << whole.error().message;
  EXPECT_NE(whole.error().message.find("i32"), std::string::npos) << whole.error().message;
  EXPECT_TRUE((x + 1).ok()) << "the queue computes after refusals";
  // Operations with one name keep their own texts, also for forms that come later.
  const Custom two = text_op("same", 1, "STORE(y, at, 2.0f)"),
               three = text_op("same", 1, "STORE(y, at, 3.0f)");
  for (const Tensor& t : {x, x.narrow(0, 0, 2)}) {
    EXPECT_EQ(two({t}).values<float>()->at(1), 2);
    EXPECT_EQ(three({t}).values<float>()->at(1), 3);
  }
  // Without a function, the CPU refuses by name.
  const Tensor here = text_op("only_gpus", 1, "STORE(y, at, 1.0f)")({x.to(*open_queue("cpu"))});
  EXPECT_NE(here.error().message.find("no implementation of 'only_gpus' for cpu:0"), std::string::npos)
      << here.error().message;
}

namespace {

TEST_P(TensorsOnDevice, ComputeTextsByElement) { check_texts_of_elements(where()); }
TEST_P(TensorsOnDevice, ComputeTextsWithFunctions) { check_texts_with_functions(where()); }
TEST_P(TensorsOnDevice, ComputeTextsWithPlaces) { check_texts_with_places(where()); }
TEST_P(TensorsOnDevice, RefuseTextsByNameAndLine) { check_refused_texts(where()); }

}  // namespace
}  // namespace gimbal::test
