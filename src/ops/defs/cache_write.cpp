// cache_write(cache, x[hd, heads, R], position i32[R], sequence i32[R], pages i32[p, s]) -> the cache, with
// row r of x at position[r] of sequence[r], rounded to the cache's format.
#include "ops/defs/caches.h"
#include "tensor/block_encode.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal::ops {
namespace {

// A head's n values after a round trip through a cache of format `type`: f16 and bf16 give the nearest number
// (ties to even), the others the blocks of tensor/block_encode.h, with the step NaN if any value is not
// finite. Code times step is exact in f32, so reading a cache never rounds, but for the sum with a minimum
// (q4_1), which is rounded once.
std::vector<double> as_cached(DType type, const double* x, int n) {
  if (type == DType::F32) return {x, x + n};
  std::vector<float> values(x, x + n);
  std::vector<uint8_t> stored(size_t(row_bytes(type, n)));
  if (info(type).block == 1) encode(type, values.data(), n, stored.data());
  else
    for (int b = 0; b < n / 32; b++)
      encode_cached(type, &values[size_t(b) * 32], &stored[size_t(b) * info(type).bytes]);
  decode(type, stored.data(), n, values.data());
  return {values.begin(), values.end()};
}

}  // namespace

constinit const OpDef CacheWrite = {
    .inputs = {{"cache", Role::Written},
               {"x", Role::Rows},
               {"position", Role::Position},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages}},
    .integers = {"is_key"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &cache = c.in[0], &x = c.in[1];
      if (!is_cache(cache))
        return c.refuse("the cache must be [hd, heads, page, pages] of one of " + names_of(kCacheTypes));
      if (!is_f32(x) || x.rank != 3 || x.dim[0] != cache.dim[0] || x.dim[1] != cache.dim[1])
        return c.refuse("x must be f32 rows of the cache's heads");
      if (!is_place_in_caches(c.in[2], c.in[3], c.in[4], x.dim[2])) return c.refuse(kPlaceRule);
      return cache;
    },
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
          c.bytes_read = double(in[1].bytes());
          c.bytes_written = double(row_bytes(in[0].type, in[1].dim[0])) * double(in[1].rows());
        },
};

constinit const OpCheck CacheWriteCheck = {
    .reference =
        [](const reference::Call& c) {
          const CacheIndex at{*c.in[3], *c.in[4]};
          const int hd = int(c.in[1]->shape.dim[0]), heads = int(c.in[1]->shape.dim[1]);
          for (int r = 0; r < c.rows; r++)
            for (int h = 0; h < heads; h++) {
              const auto v = as_cached(c.out.shape.type, &c.x(1)[size_t((r * heads + h) * hd)], hd);
              for (int d = 0; d < hd; d++)
                c.put(at.element(c.out.shape, r, int64_t(c.x(2)[size_t(r)]), h, d), v[size_t(d)]);
            }
        },
    .tolerance = roundings<0>,
    .cases = [](DType cache) { return attention_cases(OpKind::CacheWrite, cache); },
    .bench =
        [](DType cache, int rows, int copy) {
          const BenchPlace at(cache, rows);
          OpParams p;
          p.i[0] = copy % 2 == 0;
          return Bench{format("{} heads of {}", kBenchKvHeads, kBenchHeadDim),
                       {at.cache,
                        {Shape(DType::F32, {kBenchHeadDim, kBenchKvHeads, rows}), {}},
                        at.position,
                        at.sequence,
                        at.pages},
                       p,
                       true};
        },
};

}  // namespace gimbal::ops
