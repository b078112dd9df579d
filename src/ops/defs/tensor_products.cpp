// Products of the tensor library. Each output is the sum of its products in rising order of k, from +0: one
// fused multiply-add for each (f64: product and sum rounded apart). Halves are converted exactly, the result
// is rounded once. In conv, k runs over (channel of the group, row, column) of the window; padding takes part
// as +0.
#include <cmath>
#include <optional>

#include "ops/defs/running_error.h"
#include "ops/defs/tensor_cases.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_matrices(const ShapeCall& c) {
  const Shape &a = c.in[0], &b = c.in[1];
  if (a.type != b.type || !has(kFloats, a.type)) return c.refuse("both must be floats of one dtype");
  if (a.rank < 2 || a.rank != b.rank || a.dim[0] != b.dim[1])
    return c.refuse("the inner dimensions must be equal");
  Shape to = a;
  to.dim[0] = b.dim[0];
  for (int i = 2; i < a.rank; i++)
    if (a.dim[i] != b.dim[i]) return c.refuse("the outer dimensions must be equal");
  return to;
}

Result<Shape> shape_of_conv(const ShapeCall& c) {
  const Shape &x = c.in[0], &w = c.in[1];
  const auto param = [&](ConvParam p) { return c.params.i[int(p)]; };
  if (x.type != w.type || !has(kFloats, x.type)) return c.refuse("both must be floats of one dtype");
  if (x.rank != 4 || w.rank != 4) return c.refuse("both must have four dimensions");
  const int64_t groups = param(ConvParam::Groups);
  if (groups < 1 || x.dim[2] % groups || w.dim[3] % groups || w.dim[2] != x.dim[2] / groups)
    return c.refuse("the channels of x must be those of the kernel for each group");
  const int64_t width = param(ConvParam::OutX), height = param(ConvParam::OutY);
  if (width < 1 || height < 1) return c.refuse("the window does not fit");
  for (ConvParam p : {ConvParam::StrideX, ConvParam::StrideY, ConvParam::DilateX, ConvParam::DilateY,
                      ConvParam::UpX, ConvParam::UpY})
    if (param(p) < 1) return c.refuse("steps must be at least 1");
  Shape to(x.type, {width, height, w.dim[3], x.dim[3]});
  return to;
}

// ---- references
void products(const reference::Call& c) {
  const Shape &a = c.in[0]->shape, &b = c.in[1]->shape;
  const auto depth = size_t(a.dim[0]), rows = size_t(a.dim[1]), columns = size_t(b.dim[0]);
  for (size_t i = 0; i < c.computed; i++) {
    const size_t column = i % columns, row = i / columns % rows, outer = i / columns / rows;
    Rounded sum;
    for (size_t k = 0; k < depth; k++)
      sum = fused({c.x(0)[(outer * rows + row) * depth + k]},
                  {c.x(1)[(outer * depth + k) * columns + column]}, sum, a.type == DType::F64);
    c.put(i, sum.v, sum.e);
  }
}

void convolutions(const reference::Call& c) {
  const Shape &x = c.in[0]->shape, &w = c.in[1]->shape, &y = c.out.shape;
  const auto param = [&](ConvParam p) { return c.params.i[int(p)]; };
  using enum ConvParam;
  // The place in x along one dim; nothing: padding, or a zero that was inserted.
  const auto place = [&](int64_t out, int64_t kernel, int dim) -> std::optional<int64_t> {
    const int64_t at = out * param(dim ? StrideY : StrideX) + kernel * param(dim ? DilateY : DilateX) -
                       param(dim ? PadY : PadX);
    const int64_t up = param(dim ? UpY : UpX);
    if (at < 0 || at % up || at / up >= x.dim[dim]) return std::nullopt;
    return at / up;
  };
  const int64_t outputs = y.dim[2] / param(Groups);
  for (size_t i = 0; i < c.computed; i++) {
    const auto at = int64_t(i);
    const int64_t ox = at % y.dim[0], oy = at / y.dim[0] % y.dim[1],
                  output = at / y.dim[0] / y.dim[1] % y.dim[2], image = at / y.dim[0] / y.dim[1] / y.dim[2];
    Rounded sum;
    for (int64_t channel = 0; channel < w.dim[2]; channel++)
      for (int64_t ky = 0; ky < w.dim[1]; ky++)
        for (int64_t kx = 0; kx < w.dim[0]; kx++) {
          const auto px = place(ox, kx, 0), py = place(oy, ky, 1);
          if (!px || !py) continue;  // + 0 * a number
          const int64_t from = image * x.dim[2] + output / outputs * w.dim[2] + channel;
          const int64_t fx = param(Flip) ? w.dim[0] - 1 - kx : kx, fy = param(Flip) ? w.dim[1] - 1 - ky : ky;
          sum = fused({c.x(1)[size_t(((output * w.dim[2] + channel) * w.dim[1] + fy) * w.dim[0] + fx)]},
                      {c.x(0)[size_t((from * x.dim[1] + *py) * x.dim[0] + *px)]}, sum, x.type == DType::F64);
        }
    c.put(i, sum.v, sum.e);
  }
}

// Threefry-4x32 with 20 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).
struct Block {
  uint32_t word[4];
};
Block threefry(const uint32_t (&key)[4], uint64_t counter) {
  constexpr int kTurns[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};
  uint32_t keys[5] = {key[0], key[1], key[2], key[3], 0x1bd11bda ^ key[0] ^ key[1] ^ key[2] ^ key[3]};
  Block b{{uint32_t(counter), uint32_t(counter >> 32), 0, 0}};
  auto& x = b.word;
  for (uint32_t round = 0; round <= 20; round++) {
    if (round % 4 == 0) {
      for (uint32_t i = 0; i < 4; i++) x[i] += keys[(round / 4 + i) % 5];
      x[3] += round / 4;
    }
    if (round == 20) break;
    for (int half = 0; half < 2; half++) {
      uint32_t &to = x[2 * half], &from = x[(round % 2 != 0) != (half != 0) ? 3 : 1];
      const int turn = kTurns[round % 8][half];
      to += from, from = (from << turn | from >> (32 - turn)) ^ to;
    }
  }
  return b;
}

void random_numbers(const reference::Call& c) {
  const auto word = [&](size_t i) { return uint32_t(c.whole()[i]); };
  const uint32_t key[4] = {word(0), word(1), 0, 0};
  const uint64_t first = word(2) | uint64_t(word(3)) << 32;
  for (size_t i = 0; i < c.computed; i++) {
    const Block b = threefry(key, first + i / 4);
    const size_t at = i % 4, pair = at / 2 * 2;
    if (Distribution(c.params.i[0]) == Distribution::Uniform) {
      c.put_exact(i, rounded(c.out.shape.type, double(b.word[at] >> 8) / 0x1p24));
      continue;
    }
    // Box and Muller: log and the root of it; the angle's own error, and a unit of sin or cos.
    const Rounded u{double((b.word[pair] >> 8) + 1) / 0x1p24};
    const Rounded length = root(Rounded{-2} * logarithm(u, 1));
    const Rounded turn =
        Rounded{double(b.word[pair + 1] >> 8) / 0x1p24} * Rounded{2 * std::acos(-1.0), 2 * std::acos(-1.0)};
    const double wave = at % 2 ? std::sin(turn.v) : std::cos(turn.v);
    const Rounded y = length * Rounded{wave, turn.e + 2 * std::fabs(wave)};
    c.put(i, y.v, y.e);
  }
}

// ---- cases: sizes around the tiles of kernels
std::vector<Case> product_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t)) return all;
  Numbers n = numbers_for(OpKind::Product, t);
  size_t next = size_t(t);
  struct Size {
    int64_t m, k, n, outer;
  };
  for (const Size& s : {Size{1, 1, 1, 1},
                        {1, 3, 17, 2},
                        {2, 33, 16, 1},
                        {3, 5, 7, 3},
                        {8, 16, 15, 1},
                        {9, 17, 33, 1},
                        {1, 257, 40, 1},
                        {17, 4, 70, 2},
                        {66, 9, 31, 1},
                        {7, 40, 515, 1},
                        {5, 300, 9, 1}})
    for (int i = 0; i < 2; i++) {
      const Lies a = nth(kViews, next), b = i ? nth(kViews, 3 * next + 1) : Lies::Dense;
      all.push_back(tensor_case(
          OpKind::Product, t,
          format("{} x {} x {}, {} of them, {} {}", s.m, s.k, s.n, s.outer, name_of(a), name_of(b)),
          {numbers(Shape(t, {s.k, s.m, s.outer}), n, Fill::Normal, a),
           numbers(Shape(t, {s.n, s.k, s.outer}), n, Fill::Normal, b)}));
      next++;
    }
  all.push_back(tensor_case(OpKind::Product, t, "of two dims",
                            {numbers(Shape(t, {6, 5}), n, Fill::Normal, Lies::Turned),
                             numbers(Shape(t, {18, 6}), n, Fill::Few, Lies::Turned)}));
  return all;
}

std::vector<Case> convolution_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t)) return all;
  Numbers n = numbers_for(OpKind::Conv, t);
  size_t next = size_t(t);
  struct Window {
    int64_t x[4], w[4];  // width, height, channels, images; width, height, channels of a group, outputs
    int64_t stride[2], pad[2], dilate[2], groups, up[2], out[2], flip;
  };
  for (const Window& v : {Window{{5, 4, 1, 1}, {3, 3, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, {1, 1}, {3, 2}, 0},
                          {{9, 7, 3, 2}, {3, 2, 3, 5}, {2, 1}, {1, 1}, {1, 2}, 1, {1, 1}, {5, 7}, 0},
                          {{8, 8, 4, 1}, {3, 3, 2, 6}, {1, 2}, {1, 0}, {2, 1}, 2, {1, 1}, {6, 3}, 0},
                          {{6, 1, 6, 2}, {2, 1, 1, 6}, {1, 1}, {0, 0}, {1, 1}, 6, {1, 1}, {5, 1}, 0},
                          {{5, 6, 3, 1}, {3, 3, 3, 4}, {1, 1}, {2, 2}, {1, 1}, 1, {2, 3}, {11, 18}, 1},
                          {{19, 18, 2, 1}, {1, 1, 2, 19}, {1, 1}, {0, 0}, {1, 1}, 1, {1, 1}, {19, 18}, 1}}) {
    OpParams p;
    const auto set = [&](ConvParam which, int64_t value) { p.i[int(which)] = value; };
    using enum ConvParam;
    set(StrideX, v.stride[0]), set(StrideY, v.stride[1]), set(PadX, v.pad[0]), set(PadY, v.pad[1]);
    set(DilateX, v.dilate[0]), set(DilateY, v.dilate[1]), set(Groups, v.groups), set(Flip, v.flip);
    set(UpX, v.up[0]), set(UpY, v.up[1]), set(OutX, v.out[0]), set(OutY, v.out[1]);
    const Shape x(t, {v.x[0], v.x[1], v.x[2], v.x[3]}), w(t, {v.w[0], v.w[1], v.w[2], v.w[3]});
    for (int i = 0; i < 3; i++) {
      const Lies how = nth(kViews, next), other = nth(kViews, 3 * next + 2);
      all.push_back(tensor_case(
          OpKind::Conv, t, format("{} {} by {} {}", to_string(x), name_of(how), to_string(w), name_of(other)),
          {numbers(x, n, Fill::Normal, how), numbers(w, n, Fill::Normal, other)}, p));
      next++;
    }
  }
  return all;
}

std::vector<Case> random_cases(DType named) {
  std::vector<Case> all;
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::F64})
    for (Distribution which : {Distribution::Uniform, Distribution::Normal})
      for (int64_t count : {1, 3, 5, 1025, 2047}) {
        OpParams p;
        p.i[0] = int64_t(which), p.i[1] = int64_t(t), p.i[2] = count;
        // The block's number runs over 32 bits.
        const std::vector<double> state = {double(count), 77, double(0xffffff80), count == 5 ? 1e9 : 5.0};
        all.push_back(tensor_case(
            OpKind::Random, named,
            format("{} {} {}", count, info(t).name, which == Distribution::Normal ? "normal" : "uniform"),
            {numbers_of(Shape(DType::U32, {4}), state)}, p));
      }
  return all;
}

}  // namespace

constinit const OpDef Product = {.inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
                                 .product = false,
                                 .shape = shape_of_matrices,
                                 .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                   c.operations = 2 * double(in[0].dim[0]) * double(out.count());
                                 }};
constinit const OpDef Conv = {.inputs = {{"x", Role::Whole}, {"kernel", Role::Whole}},
                              .integers = {"stride_x", "stride_y", "pad_x", "pad_y", "dilate_x", "dilate_y",
                                           "groups", "up_x", "up_y", "out_x", "out_y", "flip"},
                              .shape = shape_of_conv,
                              .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                c.operations = 2 * double(in[1].dim[0] * in[1].dim[1] * in[1].dim[2]) *
                                               double(out.count());
                              }};
constinit const OpDef Random = {.inputs = {{"state", Role::Whole}},
                                .integers = {"distribution", "dtype", "values"},
                                .operations = 20,
                                .shape = [](const ShapeCall& c) -> Result<Shape> {
                                  const auto type = DType(c.params.i[1]);
                                  if (c.in[0].type != DType::U32 || c.in[0].rank != 1 || c.in[0].dim[0] != 4)
                                    return c.refuse("the state must be u32[4]");
                                  if (!has(kFloats, type) || c.params.i[2] < 1)
                                    return c.refuse("random numbers are floats");
                                  return Shape(type, {c.params.i[2]});
                                }};

constinit const OpCheck ProductCheck = {
    .reference = products, .tolerance = one_rounding, .cases = product_cases};
constinit const OpCheck ConvCheck = {
    .reference = convolutions, .tolerance = one_rounding, .cases = convolution_cases};
constinit const OpCheck RandomCheck = {
    .reference = random_numbers, .tolerance = roundings<1>, .cases = random_cases};

}  // namespace gimbal::ops
