// Attention over a paged cache, and writing to it. The keys are walked in tiles of one page (64 positions)
// with a running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018),
// so what a row computes depends on its position alone: not on the batch it came in, nor on how the prompt
// was split.
#pragma once

#include "backends/cpu/kernels/cache_blocks.h"
#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/memory.h"

// The element types of a cache. Quantized caches are read as f32, tile by tile.
struct CacheF32 {
  using Element = float;
  static inline F get(const float* p) { return load(p); }
  static inline float from(float x) { return x; }
};
struct CacheF16 {
  using Element = uint16_t;
  static inline F get(const uint16_t* p) { return load(p); }
  static inline uint16_t from(float x) { return float_to_half(x); }
};
struct CacheBF16 {
  using Element = uint16_t;
  static inline F get(const uint16_t* p) { return load_bf16(p); }
  static inline uint16_t from(float x) { return float_to_bf16(x); }
};

// The page that holds a position of a sequence. Positions and pages come from the runtime, which checks them.
struct Pages {
  const int32_t* table;
  int32_t per_sequence;
  int64_t operator()(int32_t sequence, int32_t position) const {
    return table[int64_t(sequence) * per_sequence + position / kPagePositions];
  }
};
inline Pages pages_of(const CpuTask& t, int input) {
  return {reinterpret_cast<const int32_t*>(t.x[input]), t.in[input]->dim[0]};
}

// Bytes of one head in one page: heads and pages are equally large, one after the other.
inline int64_t head_bytes(const gimbal_value& cache) {
  return int64_t(cache.bytes) / (int64_t(cache.dim[1]) * cache.dim[3]);
}

// A unit is a row and a KV head: the query heads that share it read its keys and values together.
inline CpuWork attention_work(const CpuTask& t) {
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += read<int32_t>(t.x[3] + 4 * r) + 1;
  return {int64_t(t.rows) * t.in[1]->dim[1], 4.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * positions};
}

// One page of keys and values, and the positions in it that the row may see: from .. to - 1.
struct Span {
  const uint8_t *keys, *values;
  int32_t from, to;
};

// What H query heads of a row have seen so far. Every head's numbers are its own: H changes no bits.
template <class C, int H>
struct Attending {
  using E = typename C::Element;
  int32_t hd, vectors;
  const float* q;  // H heads of hd values
  F scale;
  TileReader tiles;
  float highest[H], total[H];
  float sum[H][gimbal::kMostHeadDim];

  void begin(const CpuTask& t, const float* heads) {
    hd = t.in[0]->dim[0], vectors = (hd + 15) / 16;
    q = heads, scale = splat(t.op->param.f[0]);
    tiles = tile_reader(DType(t.in[1]->dtype));
    for (int h = 0; h < H; h++) {
      highest[h] = -__builtin_inff(), total[h] = 0;
      for (int32_t v = 0; v < vectors; v++) store(sum[h] + 16 * v, splat(0.f));
    }
  }

  // A cache of plain numbers is read where it lies; a tile is decoded first, once for the H heads.
  static constexpr bool may_have_tiles = sizeof(E) == 4;

  // Sixteen keys, the s-th of the page: their dimensions from d on, up to 32 of a quantized cache.
  inline const E* keys(const Span& p, int s, int32_t d, E* decoded) const {
    if constexpr (may_have_tiles)
      if (tiles.bytes) {
        tiles.keys(p.keys + (s * hd + d) / 32 * tiles.bytes, decoded);
        return decoded;
      }
    return reinterpret_cast<const E*>(p.keys) + (s * hd + d) * 16;
  }

  void page(const Span& p) {
    F score[4][H];
    E decoded[2][may_have_tiles ? kTileFloats : 1];
    const int32_t strip = may_have_tiles && tiles.bytes ? 32 : hd;
    for (int s = 0; s < 4; s += 2) {
      for (int h = 0; h < H; h++) score[s][h] = score[s + 1][h] = splat(0.f);
      int32_t first = 0;
      do {
        const E *a = keys(p, s, first, decoded[0]), *b = keys(p, s + 1, first, decoded[1]);
        const float* x = q + first;
        for (int32_t d = 0; d < strip; d++) {
          const F ka = C::get(a + 16 * d), kb = C::get(b + 16 * d);
          for (int h = 0; h < H; h++) {
            const F one = splat(x[h * hd + d]);
            score[s][h] = fma(one, ka, score[s][h]);
            score[s + 1][h] = fma(one, kb, score[s + 1][h]);
          }
        }
        first += strip;
      } while (may_have_tiles && first < hd);
    }
    float weight[H][kPagePositions];
    F fade[H];  // of what was summed under the old maximum
    for (int h = 0; h < H; h++) {
      F top = splat(-__builtin_inff());
      F part =
          splat(0.f);  // of the sum of weights; NaN when a score is not finite: exp() and max() lose those
      for (int s = 0; s < 4; s++) {
        score[s][h] = mul(score[s][h], scale);
        part = add(part, keep(mul(score[s][h], splat(0.f)), p.from - 16 * s, p.to - 16 * s, 0.f));
        score[s][h] = keep(score[s][h], p.from - 16 * s, p.to - 16 * s, -__builtin_inff());
        top = max(top, score[s][h]);
      }
      const float page_highest = tree_max(top);
      const float now = page_highest > highest[h] ? page_highest : highest[h];
      for (int s = 0; s < 4; s++) {
        F w = keep(exp(sub(score[s][h], splat(now))), p.from - 16 * s, p.to - 16 * s, 0.f);
        store(weight[h] + 16 * s, w);
        part = add(part, w);
      }
      fade[h] = exp(splat(highest[h] - now));
      float fade_once[16];
      store(fade_once, fade[h]);
      total[h] = total[h] * fade_once[0] + tree_sum(part);
      highest[h] = now;
    }
    int32_t v = 0;
    for (; v + 2 <= vectors; v += 2) weigh<2>(p, v, weight, fade);
    for (; v < vectors; v++) weigh<1>(p, v, weight, fade);
  }

  // Vectors v .. v + N - 1 of the values.
  template <int N>
  inline void weigh(const Span& p, int32_t v, const float (*weight)[kPagePositions], const F* fade) {
    E decoded[may_have_tiles && N == 2 ? kPagePositions * 32 : 1];
    const E* column = reinterpret_cast<const E*>(p.values) + v * 16;
    int32_t stride = vectors * 16;
    if constexpr (may_have_tiles && N == 2)  // heads of a quantized cache are whole pairs of vectors
      if (tiles.bytes) {
        for (int s = p.from / 16; s * 16 < p.to; s++)
          tiles.values(p.values + (s * hd / 32 + v / 2) * tiles.bytes, decoded + s * kTileFloats);
        column = decoded, stride = 32;
      }
    F acc[H][N];
    for (int h = 0; h < H; h++)
      for (int n = 0; n < N; n++) acc[h][n] = mul(load(sum[h] + 16 * (v + n)), fade[h]);
    for (int32_t j = p.from; j < p.to; j++) {
      F value[N];
      for (int n = 0; n < N; n++) value[n] = C::get(column + j * stride + 16 * n);
      for (int h = 0; h < H; h++)
        for (int n = 0; n < N; n++) acc[h][n] = fma(splat(weight[h][j]), value[n], acc[h][n]);
    }
    for (int h = 0; h < H; h++)
      for (int n = 0; n < N; n++) store(sum[h] + 16 * (v + n), acc[h][n]);
  }

  void finish(float* y) const {
    for (int h = 0; h < H; h++)
      for (int32_t v = 0; v < vectors; v++)
        store_part(y + h * hd + 16 * v, div(load(sum[h] + 16 * v), splat(total[h])),
                   hd - 16 * v < 16 ? hd - 16 * v : 16);
  }
};

template <class C, int H>
inline void attend(const CpuTask& t, const Pages& pages, int64_t row, int64_t kv, int64_t head) {
  const int32_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1], kv_heads = t.in[1]->dim[1],
                window = t.op->param.i[1];
  const int64_t key_head = head_bytes(*t.in[1]), value_head = head_bytes(*t.in[2]);
  const int32_t position = read<int32_t>(t.x[3] + 4 * row), sequence = read<int32_t>(t.x[4] + 4 * row);
  const int32_t first = window > 0 && position >= window ? position - window + 1 : 0;
  Attending<C, H> a;
  a.begin(t, reinterpret_cast<const float*>(t.x[0]) + (row * heads + head) * hd);
  for (int32_t base = first / kPagePositions * kPagePositions; base <= position; base += kPagePositions) {
    const int64_t page = pages(sequence, base) * kv_heads + kv;
    a.page({t.x[1] + page * key_head, t.x[2] + page * value_head, first > base ? first - base : 0,
            position - base + 1 < kPagePositions ? position - base + 1 : kPagePositions});
  }
  a.finish(reinterpret_cast<float*>(t.y) + (row * heads + head) * hd);
}

template <class C>
void attention(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t kv_heads = t.in[1]->dim[1], group = t.in[0]->dim[1] / kv_heads;
  const Pages pages = pages_of(t, 5);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t row = unit / kv_heads, kv = unit % kv_heads, past = (kv + 1) * group;
    int64_t head = kv * group;
    for (; head + 4 <= past; head += 4) attend<C, 4>(t, pages, row, kv, head);
    for (; head + 2 <= past; head += 2) attend<C, 2>(t, pages, row, kv, head);
    for (; head < past; head++) attend<C, 1>(t, pages, row, kv, head);
  }
}

// How one head at one position, `at` in its page, is written to the head's part of the page.
template <class C>
inline void write_head(DType, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page) {
  auto* y = reinterpret_cast<typename C::Element*>(page);
  const int64_t padded = gimbal::cpu::up(hd, 16);
  for (int32_t d = 0; d < hd; d++)
    y[is_key ? (at / 16 * hd + d) * 16 + at % 16 : at * padded + d] = C::from(x[d]);
}
inline void write_head_blocks(DType t, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page) {
  write_blocks(t, x, hd, is_key, at % 16, page + at / 16 * hd / 32 * gimbal::cpu::cache_tile_bytes(t));
}

using WriteHead = void (*)(DType, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page);
template <WriteHead Write>
void cache_write(const CpuTask& t, int64_t begin, int64_t end) {
  const int32_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1];
  const bool is_key = t.op->param.i[0] != 0;
  const auto type = DType(t.in[0]->dtype);
  const int64_t head = head_bytes(*t.in[0]);
  const Pages pages = pages_of(t, 4);
  for (int64_t row = begin; row < end; row++) {
    const int32_t position = read<int32_t>(t.x[2] + 4 * row), sequence = read<int32_t>(t.x[3] + 4 * row),
                  at = position % kPagePositions;
    for (int32_t h = 0; h < heads; h++) {
      const float* x = reinterpret_cast<const float*>(t.x[1]) + (row * heads + h) * hd;
      Write(type, x, hd, is_key, at, t.y + (pages(sequence, position) * heads + h) * head);
    }
  }
}
inline CpuWork cache_write_work(const CpuTask& t) {
  return {t.rows, 2.0 * t.in[1]->dim[0] * t.in[1]->dim[1] * t.rows};
}
