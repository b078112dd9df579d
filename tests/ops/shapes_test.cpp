// What every op accepts and refuses; refusals must name the op, the shapes found and the rule.
#include "ops/op_def.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/maps.h"

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

      {OpKind::AddScaled, {f({7, 3}), f({7, 3}), f({1, 3})}, f({7, 3})},
      {OpKind::AddScaled, {f({7, 2, 3}), f({7, 2, 3}), f({1, 3})}, f({7, 2, 3})},
      {OpKind::AddScaled, {f({7, 3}), f({7, 2}), f({1, 3})}, {}, "of the same shape"},
      {OpKind::AddScaled, {f({7}), f({7}), f({1, 1})}, {}, "f32 rows"},
      {OpKind::AddScaled, {f({7, 3}), f({7, 3}), f({7, 3})}, {}, "a factor for each row"},
      {OpKind::AddScaled, {f({7, 3}), f({7, 3}), f({1, 2})}, {}, "a factor for each row"},
      {OpKind::AddScaled, {f({7, 3}), f({7, 3}), i({1, 3})}, {}, "a factor for each row"},

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
       {cache(32, 2, 4, DType::Q5_1), f({32, 2, 3}), i({3}), i({3}), i({4, 1})},
       {},
       "one of f32, f16, q4_0, q4_1, q5_0, q8_0, iq4_nl, bf16"},
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
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3}), f({28})},
       f({8, 4, 3}),
       "",
       {{}, {0, 0, 0, 3}}},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3}), f({24})},
       {},
       "for each head of q",
       {{}, {0, 0, 0, 3}}},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3})},
       {},
       "for each head of q",
       {{}, {0, 0, 0, 3}}},
      {OpKind::Attention,
       {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1}), i({2, 3}), f({8200})},
       {},
       "0 to 1024",
       {{}, {0, 0, 0, 1025}}},

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
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 2, 3}), f({5, 2, 3}), f({120, 5}), i({3}), i({1, 2})},
       f({5, 6, 3})},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 6, 3}), f({5, 6, 3}), f({120, 5}), i({3}), i({1, 2}), f({8, 6, 3})},
       f({5, 6, 3}),
       "",
       {{}, {1, 1}}},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 6, 3}), f({5, 6, 3}), f({120, 5}), i({3}), i({1, 2}), f({4, 6, 3})},
       {},
       "what is erased"},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({6, 3}), f({4, 2, 3}), f({5, 2, 3}), f({120, 5}), i({3}), i({1, 2})},
       {},
       "q and decay"},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 2, 3}), f({5, 4, 3}), f({120, 5}), i({3}), i({1, 2})},
       {},
       "multiple of its heads"},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 3, 3}), f({5, 2, 3}), f({120, 5}), i({3}), i({1, 2})},
       {},
       "with the heads of v"},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 2, 3}), f({5, 2, 3}), f({40, 5}), i({3}), i({1, 2})},
       {},
       "the state must be"},
      {OpKind::GatedRule,
       {f({4, 6, 3}), f({4, 6, 3}), f({4, 2, 3}), f({5, 2, 3}), f({120, 5}), i({3}), i({1, 2})},
       {},
       "are 0 or 1",
       {{}, {2}}},
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
      {OpKind::Hadamard, {f({96, 2, 3})}, f({96, 2, 3}), "", {{}, {32}}},
      {OpKind::Hadamard, {f({96, 2, 3})}, {}, "whole runs", {{}, {64}}},
      {OpKind::Hadamard, {f({96, 2, 3})}, {}, "power of two", {{}, {48}}},
      {OpKind::Hadamard, {f({96, 2, 3})}, {}, "power of two", {{}, {1}}},
      {OpKind::Hadamard, {f({96, 3})}, {}, "f32[hd, heads, rows]", {{}, {32}}},
      {OpKind::Hadamard, {f({2048, 1, 3})}, {}, "at most 1024", {{}, {32}}},
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

OpParams with(std::initializer_list<int64_t> i) {
  OpParams p;
  std::copy(i.begin(), i.end(), p.i);
  return p;
}
OpParams map_of(MapFunction f, Operands o = Operands::Values) { return with({int64_t(f), int64_t(o)}); }
OpParams window(int64_t groups, int64_t out) { return with({1, 1, 0, 0, 1, 1, groups, 1, 1, out, out, 0}); }

// The ops of the tensor library: plain numbers of any format and rank.
const std::vector<Try>& tensor_tries() {
  const Shape flags(DType::Bool, {5, 3});
  const DType B = DType::Bool, D = DType::F64, L = DType::I64, U = DType::U32;
  static const std::vector<Try> all = {
      {OpKind::Map, {Shape(H, {5, 3})}, Shape(H, {5, 3}), "", map_of(MapFunction::Exp)},
      {OpKind::Map, {i({5}), i({5})}, i({5}), "", map_of(MapFunction::Add)},
      {OpKind::Map, {f({5}), f({5})}, Shape(B, {5}), "", map_of(MapFunction::Lt)},
      {OpKind::Map, {f({5})}, f({5}), "", map_of(MapFunction::Pow, Operands::NumberFirst)},
      {OpKind::Map, {i({5})}, {}, "exp is not defined for i32", map_of(MapFunction::Exp)},
      {OpKind::Map, {f({5})}, {}, "add takes 2 operands", map_of(MapFunction::Add)},
      {OpKind::Map, {f({5}), f({4})}, {}, "same dimensions", map_of(MapFunction::Add)},
      {OpKind::Map, {f({5}), i({5})}, {}, "one dtype", map_of(MapFunction::Add)},
      {OpKind::Map, {f({5})}, {}, "no such function", with({9999})},
      {OpKind::Cast, {f({5, 2, 3})}, Shape(DType::F8_E4M3, {5, 2, 3}), "", to(DType::F8_E4M3)},
      {OpKind::Cast, {f({256})}, {}, "plain numbers", to(DType::Q4_K)},
      {OpKind::Assign, {f({5, 3}), f({5, 3})}, f({5, 3})},
      {OpKind::Assign, {f({5, 3}), f({3, 5})}, {}, "same dimensions"},
      {OpKind::Select, {flags, i({5, 3}), i({5, 3})}, i({5, 3})},
      {OpKind::Select, {i({5, 3}), i({5, 3}), i({5, 3})}, {}, "must be bool"},
      {OpKind::Select, {flags, i({5, 3}), f({5, 3})}, {}, "one dtype"},
      {OpKind::Reduce, {Shape(H, {5, 3, 2})}, Shape(H, {2}), "", with({int64_t(Reduction::Sum), 2})},
      {OpKind::Reduce, {i({5, 3})}, Shape(L, {3}), "", with({int64_t(Reduction::Prod), 1})},
      {OpKind::Reduce, {i({5, 3})}, {}, "not of this dtype", with({int64_t(Reduction::Mean), 1})},
      {OpKind::Reduce, {f({5, 3})}, {}, "as many dimensions", with({0, 3})},
      {OpKind::Reduce, {f({5, 3})}, {}, "no such reduction", with({int64_t(Reduction::Count), 1})},
      {OpKind::Softmax, {f({5, 3})}, f({5, 3})},
      {OpKind::Softmax, {i({5, 3})}, {}, "must be of floats"},
      {OpKind::Normalize, {f({5, 3}), f({5}), f({5})}, f({5, 3})},
      {OpKind::Normalize, {f({5, 3}), f({3})}, {}, "one value for each of a row"},
      {OpKind::CumSum, {Shape(L, {5, 3})}, Shape(L, {5, 3})},
      {OpKind::CumSum, {i({5, 3})}, {}, "floats or i64"},
      {OpKind::Gather, {f({5, 3}), i({2, 3})}, f({2, 3}), "", with({0})},
      {OpKind::Gather, {f({5, 3}), i({2, 3})}, {}, "but for the one along which", with({1})},
      {OpKind::Gather, {f({5, 3}), f({2, 3})}, {}, "must be integers", with({0})},
      {OpKind::Scatter, {f({5, 3}), i({2, 3}), f({2, 3})}, f({5, 3}), "", with({0, 1})},
      {OpKind::Scatter, {f({5, 3}), i({2, 3}), f({5, 3})}, {}, "the same dimensions", with({0, 1})},
      {OpKind::Scatter, {f({5, 3}), i({2, 3}), Shape(H, {2, 3})}, {}, "one dtype", with({0, 1})},
      {OpKind::CheckIds, {i({2, 3})}, Shape(L, {3}), "", with({5})},
      {OpKind::CheckIds, {f({2, 3})}, {}, "must be integers", with({5})},
      {OpKind::Product, {Shape(D, {7, 4, 2}), Shape(D, {9, 7, 2})}, Shape(D, {9, 4, 2})},
      {OpKind::Product, {f({7, 4}), f({9, 6})}, {}, "inner dimensions"},
      {OpKind::Product, {f({7, 4, 2}), f({9, 7, 3})}, {}, "outer dimensions"},
      {OpKind::Product, {f({7, 4}), Shape(H, {9, 7})}, {}, "floats of one dtype"},
      {OpKind::Conv, {f({8, 8, 6, 2}), f({3, 3, 3, 4})}, f({6, 6, 4, 2}), "", window(2, 6)},
      {OpKind::Conv, {f({8, 8, 6, 2}), f({3, 3, 6, 4})}, {}, "for each group", window(2, 6)},
      {OpKind::Conv, {f({8, 8, 6, 2}), f({3, 3, 3, 4})}, {}, "does not fit", window(2, 0)},
      {OpKind::Conv, {i({8, 8, 6, 2}), i({3, 3, 3, 4})}, {}, "floats of one dtype", window(2, 6)},
      {OpKind::Conv, {f({8, 8, 6, 2}), Shape(H, {3, 3, 3, 4})}, {}, "floats of one dtype", window(2, 6)},
      {OpKind::Resample, {Shape(H, {5, 3}), i({2, 7}), f({2, 7})}, Shape(H, {7, 3})},
      {OpKind::Resample, {f({5}), i({2, 7}), f({2, 7})}, f({7})},
      {OpKind::Resample, {f({5, 3}), i({2, 7}), f({2, 6})}, {}, "[taps, m]"},
      {OpKind::Random, {Shape(U, {4})}, f({9}), "", with({0, int64_t(F), 9})},
      {OpKind::Random, {Shape(U, {4})}, {}, "are floats", with({0, int64_t(I), 9})},
      {OpKind::Order, {Shape(D, {5, 3})}, i({5, 3}), "", with({1})},
      {OpKind::Order, {Shape(D, {5, 3})}, Shape(D, {5, 3}), "", with({1, 1})},
      {OpKind::Order, {Shape(DType::U64, {5, 3})}, {}, "have an order", with({1})},
      {OpKind::Custom, {f({5}), i({3})}, Shape(H, {2, 7}), "", with({8, int64_t(H), 2, 2, 7})},
      {OpKind::Custom, {f({5})}, {}, "name a kernel", with({0, int64_t(H), 1, 2})},
      {OpKind::Custom, {f({5})}, {}, "plain numbers", with({8, int64_t(DType::Q4_0), 1, 32})},
      {OpKind::Custom, {f({5})}, {}, "1 to 8 dimensions", with({8, int64_t(H), 9})},
      {OpKind::Custom, {f({5})}, {}, "have elements", with({8, int64_t(H), 2, 3})},
      {OpKind::CustomInPlace, {f({5}), i({3})}, f({5}), "", with({8})},
      {OpKind::CustomInPlace, {f({5})}, {}, "name a kernel"},
      {OpKind::Encode, {f({512, 3}), f({512})}, Shape(DType::Q4_K, {512, 3}), "", to(DType::Q4_K)},
      {OpKind::Encode, {f({512, 3})}, {}, "weights in blocks", to(H)},
      {OpKind::Encode, {f({500, 3})}, {}, "whole blocks", to(DType::Q4_K)},
      {OpKind::Encode, {Shape(H, {512})}, {}, "rows of f32", to(DType::Q4_K)},
      {OpKind::Encode, {f({512, 3}), f({3})}, {}, "one value for each", to(DType::Q4_K)},
      {OpKind::IndexedProduct, {Shape(DType::Q8_0, {64, 5, 4}), f({64, 1, 3}), i({2, 3})}, f({5, 2, 3})},
      {OpKind::IndexedProduct, {f({64, 5, 4}), f({64, 3, 3}), i({2, 3})}, {}, "slots or 1"},
      {OpKind::IndexedProduct, {f({64, 5, 4}), Shape(H, {64, 1, 3}), i({2, 3})}, {}, "x must be f32"},
      {OpKind::IndexedProduct, {f({64, 5, 4}), f({64, 1, 3}), f({2, 3})}, {}, "must be integers"},
      {OpKind::SolveTriangular, {Shape(D, {4, 4, 2}), Shape(D, {3, 4, 2})}, Shape(D, {3, 4, 2})},
      {OpKind::SolveTriangular, {f({4, 5}), f({3, 4})}, {}, "must be square"},
      {OpKind::SolveTriangular, {f({4, 4}), f({4, 3})}, {}, "as many rows"},
      {OpKind::SolveTriangular, {f({4, 4}), Shape(D, {3, 4})}, {}, "both f64"},
      {OpKind::Cholesky, {f({4, 4, 2})}, f({4, 4, 2})},
      {OpKind::Cholesky, {f({4, 3})}, {}, "must be square"},
      {OpKind::Qr, {Shape(D, {3, 5, 2})}, Shape(D, {3, 8, 2})},
      {OpKind::Qr, {f({7, 5})}, f({5, 12})},
      {OpKind::Qr, {i({7, 5})}, {}, "f32 or f64"},
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

// Attention with numbers for positions, and the ops that make these: four heads of 8 values, three rows.
std::vector<Try> of_indexers() {
  const auto attention = [](const std::vector<Shape>& more, const char* rule) {
    Try t{OpKind::Attention,
          {f({8, 4, 3}), cache(8, 2, 4), cache(8, 2, 4), i({3}), i({3}), i({4, 1})},
          {},
          rule};
    if (!*rule) t.out = f({8, 4, 3});
    t.in.insert(t.in.end(), more.begin(), more.end()), t.params.i[4] = 1;
    return t;
  };
  const auto scores = [](int n, const char* rule, Shape keys = cache(8, 1, 4), Shape weights = f({4, 3}),
                         int rows = 3, Shape q = f({8, 4, 3})) {
    Try t{OpKind::IndexScores, {q, keys, weights, i({rows}), i({3}), i({4, 1})}, {}, rule, with_i(n)};
    if (!*rule) t.out = f({n, 3});
    return t;
  };
  const char* whole = "multiple of 64";
  return {attention({f({128, 3})}, ""),
          attention({f({100, 3})}, whole),
          attention({f({128, 2})}, whole),
          attention({i({2, 3})}, whole),
          attention({}, whole),
          attention({f({128, 3}), f({4})}, "without sinks"),
          scores(128, ""),
          scores(100, whole),
          scores(320, "those of the pages"),
          scores(64, "one head", cache(8, 2, 4)),
          scores(64, "f32, f16 or bf16", cache(32, 1, 4, DType::Q8_0)),
          scores(64, "one per head", cache(8, 1, 4), f({3, 3})),
          scores(64, "one per row", cache(8, 1, 4), f({4, 3}), 2),
          scores(64, "q must be", cache(8, 1, 4), f({4, 3}), 3, f({8, 4})),
          {OpKind::KeepTop, {f({9, 3}), f({18, 3})}, f({9, 3})},
          {OpKind::KeepTop, {f({9, 3}), f({20, 3})}, {}, "at most all of x"},
          {OpKind::KeepTop, {f({9, 3}), f({7, 3})}, {}, "values and places"},
          {OpKind::KeepTop, {f({9, 3}), f({8, 2})}, {}, "as many of both"}};
}

TEST(Shapes, AreAcceptedAndRefusedByTheRules) {
  std::set<OpKind> accepted, refused;
  std::vector<Try> all = of_elementwise_ops(), indexers = of_indexers();
  all.insert(all.end(), indexers.begin(), indexers.end());
  all.insert(all.end(), tries().begin(), tries().end());
  all.insert(all.end(), tensor_tries().begin(), tensor_tries().end());
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

}  // namespace
}  // namespace gimbal
