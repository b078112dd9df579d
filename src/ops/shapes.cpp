#include "ops/shapes.h"

#include "base/format.h"

namespace gimbal {
namespace {

struct Check {
  OpKind kind;
  std::span<const Shape> in;

  Error refuse(const std::string& rule) const {
    std::string shapes;
    for (const Shape& s : in) shapes += (shapes.empty() ? "" : ", ") + to_string(s);
    return {Code::Unsupported, format("{}({}): {}", info(kind).name, shapes, rule), ""};
  }
};

bool is_cache(const Shape& s) {
  return s.rank == 4 && s.dim[2] == kPagePositions && has(kCacheTypes, s.type);
}
bool is_index_row(const Shape& s) { return s.type == DType::I32 && s.rank == 1; }
bool is_f32(const Shape& s) { return s.type == DType::F32; }

}  // namespace

DType activation_type(DType w) {
  if (has(set_of(DType::F32, DType::F16, DType::BF16), w)) return DType::F32;
  return info(w).block == 256 || w == DType::I2_S ? DType::A8_256 : DType::A8_32;
}

Result<Shape> output_shape(OpKind kind, const OpParams& p, std::span<const Shape> in) {
  Check c{kind, in};
  if (int(in.size()) < info(kind).fewest_inputs || int(in.size()) > info(kind).most_inputs)
    return c.refuse("wrong number of inputs");
  for (const Shape& s : in) {
    if (s.dim[0] % info(s.type).block) return c.refuse("a row is not a whole number of blocks of its format");
    for (int64_t d : s.dim)
      if (d < 1) return c.refuse("every dimension must be at least 1");
  }
  const Shape& a = in[0];
  const Shape& b = in.size() > 1 ? in[1] : in[0];
  switch (kind) {
    case OpKind::Embed:
      if (a.rank != 2) return c.refuse("the table must be a matrix");
      if (!is_index_row(b)) return c.refuse("tokens must be one row of i32");
      return Shape(DType::F32, {a.dim[0], b.dim[0]});
    case OpKind::RmsNorm:
      if (!is_f32(a) || !is_f32(b)) return c.refuse("both must be f32");
      if (b.rank != 1 || b.dim[0] != a.dim[0])
        return c.refuse("the weight must have as many values as a row of x");
      return a;
    case OpKind::Quantize: {
      auto t = DType(p.i[0]);
      if (!is_f32(a) || a.rank != 2) return c.refuse("x must be f32 rows");
      if (t != DType::A8_32 && t != DType::A8_256)
        return c.refuse("activations are quantized to a8_32 or a8_256");
      if (a.dim[0] % info(t).block) return c.refuse("a row of x is not a whole number of blocks");
      Shape out = a;
      out.type = t;
      return out;
    }
    case OpKind::MatMul:
      if (a.rank != 2 || b.rank != 2) return c.refuse("the weight and x must be matrices");
      if (a.dim[0] != b.dim[0]) return c.refuse("the rows of the weight and of x must be equally long");
      if (b.type != activation_type(a.type))
        return c.refuse("x is not in the format that goes with the weight's");
      if (in.size() == 3 && (!is_f32(in[2]) || in[2].rank != 1 || in[2].dim[0] != a.dim[1]))
        return c.refuse("the bias must be f32 with one value per row of the weight");
      return Shape(DType::F32, {a.dim[1], b.dim[1]});
    case OpKind::Rope:
      if (!is_f32(a) || a.rank != 3 || !is_f32(b) || b.rank != 2)
        return c.refuse("x must be f32[hd, heads, rows], the table f32[rot, rows]");
      if (b.dim[1] != a.dim[2]) return c.refuse("the table must have one row per row of x");
      if (b.dim[0] > a.dim[0] || b.dim[0] % 2)
        return c.refuse("an even number of values, at most a head's, can be rotated");
      return a;
    case OpKind::CacheWrite:
      if (!is_cache(a))
        return c.refuse("the cache must be [hd, heads, page, pages] of one of " + names_of(kCacheTypes));
      if (!is_f32(b) || b.rank != 3 || b.dim[0] != a.dim[0] || b.dim[1] != a.dim[1])
        return c.refuse("x must be f32 rows of the cache's heads");
      if (!is_index_row(in[2]) || !is_index_row(in[3]) || in[2].dim[0] != b.dim[2] ||
          in[3].dim[0] != b.dim[2] || in[4].type != DType::I32 || in[4].rank != 2)
        return c.refuse("positions and sequences must be i32, one per row; pages an i32 matrix");
      return a;
    case OpKind::Attention:
      if (a.dim[0] > kMostHeadDim) return c.refuse("a head may have at most 1024 values");
      if (!is_f32(a) || a.rank != 3) return c.refuse("q must be f32[hd, heads, rows]");
      if (!is_cache(b) || !is_cache(in[2]) || b.type != in[2].type || b.dim[1] != in[2].dim[1] ||
          b.dim[3] != in[2].dim[3])
        return c.refuse("keys and values must be caches of the same format, heads and pages");
      if (b.dim[0] != a.dim[0] || in[2].dim[0] != a.dim[0] || a.dim[1] % b.dim[1])
        return c.refuse("q's heads must be equally long and a multiple of the cache's");
      if (!is_index_row(in[3]) || !is_index_row(in[4]) || in[3].dim[0] != a.dim[2] ||
          in[4].dim[0] != a.dim[2] || in[5].type != DType::I32 || in[5].rank != 2)
        return c.refuse("positions and sequences must be i32, one per row; pages an i32 matrix");
      return a;
    case OpKind::SwiGlu:
    case OpKind::SquaredReluGlu:
    case OpKind::Add:
      if (!is_f32(a) || a != b) return c.refuse("both must be f32 of the same shape");
      return a;
    case OpKind::SelectRows:
      if (!is_f32(a) || a.rank != 2 || !is_index_row(b))
        return c.refuse("x must be f32 rows, the row numbers i32");
      return Shape(DType::F32, {a.dim[0], b.dim[0]});
    case OpKind::Scale:
      if (!is_f32(a)) return c.refuse("x must be f32");
      return a;
    case OpKind::TopK:
      if (!is_f32(a) || a.rank != 2) return c.refuse("x must be f32 rows");
      if (a.dim[0] > kMostTopKWidth || p.i[0] < 1 || p.i[0] > kMostTopKWidth)
        return c.refuse("a row has at most 2^24 values, and k is from 1 to 2^24");
      return Shape(DType::F32, {2 * p.i[0], a.dim[1]});
    case OpKind::Sort:
    case OpKind::ArgSort:
      if (!is_f32(a) || a.rank != 2) return c.refuse("x must be f32 rows");
      if (SortOrder(p.i[0]) != SortOrder::Rising && SortOrder(p.i[0]) != SortOrder::Falling)
        return c.refuse("the order is 0 (rising) or 1 (falling)");
      return Shape(kind == OpKind::Sort ? DType::F32 : DType::I32, {a.dim[0], a.dim[1]});
  }
  return c.refuse("no such op");
}

}  // namespace gimbal
