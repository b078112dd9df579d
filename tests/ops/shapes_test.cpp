// What every op accepts and refuses; refusals must name the op, the shapes found and the rule.
#include "ops/shapes.h"

#include <gtest/gtest.h>

#include <set>

namespace gimbal {
namespace {

const DType F = DType::F32, I = DType::I32, H = DType::F16;
const int P = kPagePositions;

struct Try {
  OpKind kind;
  std::vector<Shape> in;
  std::optional<Shape> out;  // accepted with this output
  const char* rule = "";     // or refused with these words
  OpParams params = {};
};

OpParams with_i(int32_t i) { return {{}, {i, 0}}; }
OpParams to(DType t) { return {{}, {int32_t(t), 0}}; }

Shape f(std::initializer_list<int64_t> d) { return Shape(F, d); }
Shape i(std::initializer_list<int64_t> d) { return Shape(I, d); }
Shape cache(int hd, int heads, int pages, DType t = H) { return Shape(t, {hd, heads, P, pages}); }

const std::vector<Try>& tries() {
  static const std::vector<Try> all = {
      {OpKind::Embed, {Shape(DType::Q4_0, {64, 100}), i({5})}, f({64, 5})},
      {OpKind::Embed, {f({64}), i({5})}, {}, "table must be a matrix"},
      {OpKind::Embed, {f({64, 9}), f({5})}, {}, "one row of i32"},
      {OpKind::Embed, {f({64, 9}), i({5, 1})}, {}, "one row of i32"},
      {OpKind::Embed, {Shape(DType::Q4_0, {65, 9}), i({5})}, {}, "whole number of blocks"},
      {OpKind::Embed, {f({64, 9})}, {}, "number of inputs"},

      {OpKind::RmsNorm, {f({7, 3}), f({7})}, f({7, 3})},
      {OpKind::RmsNorm, {f({8, 2, 3}), f({8})}, f({8, 2, 3})},
      {OpKind::RmsNorm, {f({7, 3}), f({3})}, {}, "as many values as a row"},
      {OpKind::RmsNorm, {f({7, 3}), f({7, 1})}, {}, "as many values as a row"},
      {OpKind::RmsNorm, {Shape(H, {7, 3}), f({7})}, {}, "must be f32"},
      {OpKind::RmsNorm, {f({7, 0}), f({7})}, {}, "at least 1"},
      {OpKind::RmsNorm, {f({-7, 3}), f({-7})}, {}, "at least 1"},

      {OpKind::Quantize, {f({64, 2})}, Shape(DType::A8_32, {64, 2}), "", to(DType::A8_32)},
      {OpKind::Quantize, {f({512, 2})}, Shape(DType::A8_256, {512, 2}), "", to(DType::A8_256)},
      {OpKind::Quantize, {f({384, 2})}, Shape(DType::A8_ROW, {384, 2}), "", to(DType::A8_ROW)},
      {OpKind::Quantize, {f({132096, 2})}, Shape(DType::A8_ROW, {132096, 2}), "", to(DType::A8_ROW)},
      {OpKind::Quantize, {f({132160, 2})}, {}, "more than 132104 values", to(DType::A8_ROW)},
      {OpKind::Quantize, {f({96, 2})}, {}, "whole number of blocks", to(DType::A8_ROW)},
      {OpKind::Quantize, {f({64, 2})}, {}, "whole number of blocks", to(DType::A8_256)},
      {OpKind::Quantize, {f({256, 2})}, {}, "a8_32, a8_256 or a8_row", to(DType::Q8_0)},
      {OpKind::Quantize, {f({256, 2})}, {}, "a8_32, a8_256 or a8_row", {{}, {-1, 0}}},
      {OpKind::Quantize, {f({256})}, {}, "f32 rows", to(DType::A8_32)},

      {OpKind::MatMul, {f({7, 9}), f({7, 3})}, f({9, 3})},
      {OpKind::MatMul, {Shape(H, {7, 9}), f({7, 3}), f({9})}, f({9, 3})},
      {OpKind::MatMul, {Shape(DType::Q4_0, {64, 9}), Shape(DType::A8_32, {64, 3})}, f({9, 3})},
      {OpKind::MatMul, {Shape(DType::Q6_K, {256, 9}), Shape(DType::A8_256, {256, 3})}, f({9, 3})},
      {OpKind::MatMul, {f({7, 9}), f({8, 3})}, {}, "equally long"},
      {OpKind::MatMul, {f({7, 9}), f({7})}, {}, "must be matrices"},
      {OpKind::MatMul, {Shape(DType::Q4_0, {64, 9}), f({64, 3})}, {}, "format that matches"},
      {OpKind::MatMul, {Shape(DType::Q4_0, {256, 9}), Shape(DType::A8_256, {256, 3})}, {}, "that matches"},
      {OpKind::MatMul, {f({7, 9}), f({7, 3}), f({3})}, {}, "bias"},
      {OpKind::MatMul, {f({7, 9}), f({7, 3}), Shape(H, {9})}, {}, "bias"},

      {OpKind::Rope, {f({8, 4, 3}), f({6, 3})}, f({8, 4, 3})},
      {OpKind::Rope, {f({8, 4, 3}), f({6, 4})}, {}, "one row per row"},
      {OpKind::Rope, {f({8, 4, 3}), f({10, 3})}, {}, "even number"},
      {OpKind::Rope, {f({8, 4, 3}), f({5, 3})}, {}, "even number"},
      {OpKind::Rope, {f({8, 3}), f({6, 3})}, {}, "f32[hd, heads, rows]"},

      {OpKind::CacheWrite, {cache(8, 2, 4), f({8, 2, 3}), i({3}), i({3}), i({4, 1})}, cache(8, 2, 4)},
      {OpKind::CacheWrite,
       {cache(8, 2, 4, DType::Q8_0), f({8, 2, 3}), i({3}), i({3}), i({4, 1})},
       {},
       "blocks"},
      {OpKind::CacheWrite,
       {cache(64, 2, 4, DType::Q8_0), f({64, 2, 3}), i({3}), i({3}), i({4, 1})},
       cache(64, 2, 4, DType::Q8_0)},
      {OpKind::CacheWrite,
       {cache(32, 2, 4, DType::Q4_0), f({32, 2, 3}), i({3}), i({3}), i({4, 1})},
       cache(32, 2, 4, DType::Q4_0)},
      {OpKind::CacheWrite,
       {cache(32, 2, 4, DType::Q5_0), f({32, 2, 3}), i({3}), i({3}), i({4, 1})},
       {},
       "one of f32, f16, q4_0, q8_0, bf16"},
      {OpKind::CacheWrite,
       {Shape(DType::I8, {8, 2, P, 4}), f({8, 2, 3}), i({3}), i({3}), i({4, 1})},
       {},
       "cache"},
      {OpKind::CacheWrite,
       {f({8, 2, P / 2, 4}), f({8, 2, 3}), i({3}), i({3}), i({4, 1})},
       {},
       "the cache must be"},
      {OpKind::CacheWrite, {cache(8, 2, 4), f({8, 3, 3}), i({3}), i({3}), i({4, 1})}, {}, "cache's heads"},
      {OpKind::CacheWrite, {cache(8, 2, 4), f({8, 2, 3}), i({2}), i({3}), i({4, 1})}, {}, "one per row"},
      {OpKind::CacheWrite, {cache(8, 2, 4), f({8, 2, 3}), i({3}), i({2}), i({4, 1})}, {}, "one per row"},
      {OpKind::CacheWrite, {cache(8, 2, 4), f({8, 2, 3}), i({3}), i({3}), i({4})}, {}, "i32 matrix"},

      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1})},
       f({8, 4, 3})},
      {OpKind::Attention,
       {f({32, 4, 3}), cache(32, 2, 4, DType::Q4_0), cache(32, 2, 4, DType::Q4_0), i({3}), i({3}), i({4, 1})},
       f({32, 4, 3})},
      {OpKind::Attention,
       {f({32, 4, 3}), cache(32, 2, 4, DType::Q8_0), cache(32, 2, 4, DType::Q4_0), i({3}), i({3}), i({4, 1})},
       {},
       "same format"},
      {OpKind::Attention,
       {f({8, 3, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1})},
       {},
       "multiple"},
      {OpKind::Attention,
       {f({9, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1})},
       {},
       "as long as the keys"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 1, 4), i({3}), i({3}), i({4, 1})},
       {},
       "same format"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 5), i({3}), i({3}), i({4, 1})},
       {},
       "same format"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4, F), i({3}), i({3}), i({4, 1})},
       {},
       "same format"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({1}), i({3}), i({4, 1})},
       {},
       "one per row"},
      {OpKind::Attention,
       {f({8, 4}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1})},
       {},
       "q must be"},

      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(6, 2, 4), i({3}), i({3}), i({4, 1})},
       f({6, 4, 3}),
       "",
       {{}, {0, 0, 6}}},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(6, 2, 4), i({3}), i({3}), i({4, 1})},
       {},
       "must be a parameter"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3}), f({4})},
       f({8, 4, 3})},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3})},
       {},
       "without a window",
       {{}, {0, 5}}},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({3})},
       {},
       "i32[2, rows]"},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3}), f({2})},
       {},
       "one per head"},

      {OpKind::Route, {f({8, 3}), f({8})}, f({4, 3}), "", {{}, {2, 1, 1, 4, 2}}},
      {OpKind::Route, {f({8, 3})}, {}, "1 to 64", with_i(0)},
      {OpKind::Route, {f({8, 3})}, {}, "1 to 64", with_i(9)},
      {OpKind::Route, {f({8, 3})}, {}, "equally large", {{}, {2, 0, 0, 3, 1}}},
      {OpKind::Route, {f({8, 3})}, {}, "must have k experts", {{}, {5, 0, 0, 4, 2}}},
      {OpKind::Route, {f({8, 3}), f({7})}, {}, "one per expert", with_i(2)},
      {OpKind::ExpertMatMul, {f({5, 12}), f({5, 1, 3}), f({4, 3}), f({12})}, f({4, 2, 3}), "", with_i(4)},
      {OpKind::ExpertMatMul, {f({5, 12}), f({5, 3, 2})}, f({4, 3, 2}), "", with_i(4)},
      {OpKind::ExpertMatMul, {f({5, 12}), f({5, 2, 2})}, {}, "as there are matrices", with_i(4)},
      {OpKind::ExpertMatMul, {f({5, 12}), f({5, 3, 2}), f({4, 2})}, {}, "as many slots", with_i(4)},
      {OpKind::ExpertMatMul, {f({5, 12}), f({5, 1, 3}), f({4, 3})}, {}, "n rows each", with_i(5)},
      {OpKind::Combine, {f({5, 2, 3}), f({4, 3})}, f({5, 3})},
      {OpKind::Combine, {f({5, 2, 3}), f({2, 3})}, {}, "2 slots"},
      {OpKind::ShortConv, {f({5, 3}), f({20}), f({15, 2}), i({3}), i({1, 2}), f({5})}, f({5, 3})},
      {OpKind::ShortConv, {f({5, 3}), f({21}), f({15, 2}), i({3}), i({1, 2})}, {}, "same 1 to 16 taps"},
      {OpKind::ShortConv, {f({5, 3}), f({20}), f({20, 2}), i({3}), i({1, 2})}, {}, "the state must be"},
      {OpKind::SelectiveScan,
       {f({4, 6, 3}), f({6, 3}), f({6}), f({8, 2, 3}), f({8, 2, 3}), f({192, 5}), i({3}), i({1, 2})},
       f({4, 6, 3})},
      {OpKind::SelectiveScan,
       {f({4, 6, 3}), f({6, 3}), f({7}), f({8, 2, 3}), f({8, 2, 3}), f({192, 5}), i({3}), i({1, 2})},
       {},
       "one value per head"},
      {OpKind::SelectiveScan,
       {f({4, 6, 3}), f({6, 3}), f({6}), f({8, 4, 3}), f({8, 4, 3}), f({192, 5}), i({3}), i({1, 2})},
       {},
       "multiple of the groups"},
      {OpKind::DeltaRule,
       {f({4, 2, 3}), f({4, 2, 3}), f({5, 6, 3}), f({6, 3}), f({6, 3}), f({120, 5}), i({3}), i({1, 2})},
       f({5, 6, 3})},
      {OpKind::DeltaRule,
       {f({4, 2, 3}), f({4, 2, 3}), f({5, 6, 3}), f({6, 3}), f({6, 3}), f({119, 5}), i({3}), i({1, 2})},
       {},
       "the state must be"},
      {OpKind::DeltaRule,
       {f({4, 4, 3}), f({4, 4, 3}), f({5, 6, 3}), f({6, 3}), f({6, 3}), f({120, 5}), i({3}), i({1, 2})},
       {},
       "multiple of q's"},
      {OpKind::Norm, {f({7, 3})}, f({7, 3})},
      {OpKind::Norm, {f({7, 2, 3}), f({14}), f({14})}, f({7, 2, 3})},
      {OpKind::Norm, {f({7, 2, 3}), f({7}), f({14})}, {}, "as many values"},
      {OpKind::Norm, {f({7, 3}), f({21})}, {}, "as many values"},
      {OpKind::Norm, {f({7, 3})}, {}, "unknown kind", with_i(4)},
      {OpKind::Slice, {f({7, 2, 3})}, f({4, 2, 3}), "", {{}, {3, 4}}},
      {OpKind::Slice, {f({7, 2, 3})}, {}, "inside x", {{}, {4, 4}}},
      {OpKind::Slice, {f({7, 2, 3})}, {}, "at least one", {{}, {3, 0}}},
      {OpKind::Concat, {f({7, 4, 3}), f({2, 4, 3})}, f({9, 4, 3})},
      {OpKind::Concat, {f({7, 4, 3}), f({2, 1, 3})}, f({9, 4, 3})},
      {OpKind::Concat, {f({7, 4, 3}), f({2, 2, 3})}, {}, "same heads"},
      {OpKind::Rope, {f({8, 2, 3}), f({4, 3})}, f({8, 2, 3}), "", {{}, {0, 4}}},
      {OpKind::Rope, {f({8, 2, 3}), f({4, 3})}, {}, "can be rotated", {{}, {0, 5}}},
      {OpKind::Mul, {f({8, 2, 3}), f({1, 2, 3})}, f({8, 2, 3})},
      {OpKind::Mul, {f({8, 2, 3}), f({1, 1, 3})}, {}, "same shape"},
      {OpKind::Mul, {f({8, 3}), f({2, 3})}, {}, "same shape"},

      {OpKind::SwiGlu, {f({5, 3}), f({5, 3})}, f({5, 3})},
      {OpKind::SwiGlu, {f({5, 3}), f({5, 2})}, {}, "same shape"},
      {OpKind::SquaredReluGlu, {f({5, 3}), f({5, 3})}, f({5, 3})},
      {OpKind::SquaredReluGlu, {f({5, 3}), f({15, 1})}, {}, "same shape"},
      {OpKind::Scale, {f({5, 3})}, f({5, 3})},
      {OpKind::Scale, {i({5})}, {}, "must be f32"},
      {OpKind::Scale, {f({5, 3}), f({1})}, {}, "number of inputs"},
      {OpKind::Add, {f({5, 3}), f({5, 3})}, f({5, 3})},
      {OpKind::Add, {f({5, 3}), f({15})}, {}, "same shape"},
      {OpKind::Add, {Shape(H, {5, 3}), Shape(H, {5, 3})}, {}, "same shape"},
      {OpKind::Add, {f({5, 3}), f({5, 3}), f({5, 3})}, {}, "number of inputs"},
      {OpKind::TopK, {f({5, 3})}, f({8, 3}), "", with_i(4)},
      {OpKind::TopK, {f({5, 3})}, {}, "k is from 1", with_i(0)},
      {OpKind::TopK, {f({(1 << 24) + 1, 1})}, {}, "2^24", with_i(1)},
      {OpKind::TopK, {i({5})}, {}, "f32 rows", with_i(1)},
      {OpKind::Sort, {f({5, 3})}, f({5, 3}), "", with_i(1)},
      {OpKind::Sort, {f({5, 3})}, {}, "rising", with_i(2)},
      {OpKind::ArgSort, {f({5, 3})}, Shape(DType::I32, {5, 3}), "", with_i(0)},
      {OpKind::ArgSort, {f({5, 2, 3})}, {}, "f32 rows", with_i(0)},
      {OpKind::SelectRows, {f({5, 3}), i({2})}, f({5, 2})},
      {OpKind::SelectRows, {f({5, 3}), f({2})}, {}, "row numbers"},
      {OpKind::SelectRows, {f({5, 2, 3}), i({2})}, {}, "f32 rows"},
  };
  return all;
}

// What holds for every op that makes a value of others at the same place.
std::vector<Try> of_elementwise_ops() {
  std::vector<Try> all;
  auto add = [&](OpKind k) {
    std::vector<Shape> in(size_t(info(k).min_inputs), f({5, 3}));
    all.push_back({k, in, f({5, 3})});
    in.back() = Shape(H, {5, 3});
    all.push_back({k, in, {}, "must be f32"});
  };
#define GIMBAL_ELEMENTWISE(number, id, ...) add(OpKind::id);
#include "ops/ops.def"
  return all;
}

TEST(Shapes, AreAcceptedAndRefusedByTheRules) {
  std::set<OpKind> accepted, refused;
  std::vector<Try> all = of_elementwise_ops();
  all.insert(all.end(), tries().begin(), tries().end());
  for (const Try& t : all) {
    auto got = output_shape(t.kind, t.params, t.in);
    std::string inputs;
    for (const Shape& s : t.in) inputs += (inputs.empty() ? "" : ", ") + to_string(s);
    const std::string call = std::string(info(t.kind).name) + "(" + inputs + ")";
    (t.out ? accepted : refused).insert(t.kind);
    if (t.out) {
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*got, *t.out) << call << " gave " << to_string(*got);
    } else {
      ASSERT_FALSE(got) << call << " was taken";
      EXPECT_EQ(got.error().code, Code::Unsupported);
      EXPECT_EQ(got.error().message.rfind(call + ": ", 0), 0u) << got.error().message;
      EXPECT_NE(got.error().message.find(t.rule), std::string::npos) << got.error().message;
    }
  }
  EXPECT_EQ(accepted.size(), std::size(kAllOps)) << "every op needs a shape that is accepted";
  EXPECT_EQ(refused.size(), std::size(kAllOps)) << "and one that is refused";
}

TEST(Shapes, NoInputsAndTooManyAreRefusedForEveryOp) {
  for (OpKind k : kAllOps)
    for (size_t n : {size_t(0), size_t(7)}) {
      std::vector<Shape> in(n, f({32, 32}));
      EXPECT_FALSE(output_shape(k, {}, in)) << info(k).name;
    }
}

TEST(Shapes, ActivationsFollowTheBlocksOfTheWeights) {
  for (DType t : {DType::F32, DType::F16, DType::BF16}) EXPECT_EQ(activation_type(t), DType::F32);
  for (DType t : {DType::Q8_0, DType::Q4_0, DType::Q5_1, DType::IQ4_NL, DType::MXFP4})
    EXPECT_EQ(activation_type(t), DType::A8_32);
  for (DType t : {DType::Q6_K, DType::Q2_K, DType::IQ1_S, DType::TQ1_0})
    EXPECT_EQ(activation_type(t), DType::A8_256);
  EXPECT_EQ(activation_type(DType::I2_S), DType::A8_ROW);
}

}  // namespace
}  // namespace gimbal
