// Attention over a paged cache, and writing to it. The keys are walked in tiles of one page (64 positions)
// with a running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018),
// so what a row computes depends on its position alone: not on the batch it came in, nor on how the prompt
// was split.
#pragma once

#include "backends/cpu/kernels/cache_blocks.h"
#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/memory.h"

// The element types of a cache of plain numbers.
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

// How attention reads a page: keys(), sixteen of them from a dimension on, and values(), two vectors of
// dimensions of sixteen positions, or one of the last few. Half: 0, or of quantized blocks which 16
// dimensions.
template <class C>
struct Plain {
  static constexpr bool quantized = false;
  const typename C::Element* at;
  int32_t stride;
  static inline Plain keys(const uint8_t* page, int32_t hd, int s, int32_t d) {
    return {reinterpret_cast<const typename C::Element*>(page) + (s * hd + d) * 16, 16};
  }
  static inline Plain values(const uint8_t* page, int32_t hd, int s, int32_t v) {
    const auto stride = int32_t(gimbal::cpu::up(hd, 16));
    return {reinterpret_cast<const typename C::Element*>(page) + s * 16 * stride + v * 16, stride};
  }
  template <int Half>
  inline F key(int d) const {
    return C::get(at + 16 * d);
  }
  template <int N>
  inline void value(int j, F* y) const {
    for (int n = 0; n < N; n++) y[n] = C::get(at + j * stride + 16 * n);
  }
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
  return {reinterpret_cast<const int32_t*>(t.x[input]), int32_t(t.in[input]->dim[0])};
}

// Bytes of one head in one page: heads and pages are equally large, one after the other.
inline int64_t head_bytes(const gimbal_value& cache) {
  return int64_t(cache.bytes) / (cache.dim[1] * cache.dim[3]);
}

inline int32_t position_of(const CpuTask& t, int64_t row) { return read<int32_t>(t.x[3] + 4 * row); }
// The positions that a row sees.
struct Seen {
  int32_t first, last;
};
inline Seen seen_by(const CpuTask& t, int64_t row) {
  if (t.op->inputs > 6) return {read<int32_t>(t.x[6] + 8 * row), read<int32_t>(t.x[6] + 8 * row + 4)};
  const int64_t window = t.op->param.i[1];
  const int32_t own = position_of(t, row);
  return {int32_t(window > 0 && own >= window ? own - window + 1 : 0), own};
}

// A unit is a row and a KV head: the query heads that share it read its keys and values together.
inline CpuWork attention_work(const CpuTask& t) {
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += seen_by(t, r).last + 1;
  return {t.rows * t.in[1]->dim[1],
          2.0 * double((t.in[0]->dim[0] + t.out->dim[0]) * t.in[0]->dim[1]) * positions};
}

// What is done to a score after the scale. 0: nothing.
struct Shaping {
  float cap;
  float slope;  // what a position of distance costs
};
inline F tanh(F x) { return sub(splat(1.f), div(splat(2.f), add(exp(add(x, x)), splat(1.f)))); }
// Scores of sixteen keys from `distance` positions after the row's own on.
[[gnu::noinline]] inline F shaped(F score, const Shaping& s, int32_t distance) {
  if (s.cap > 0) score = mul(splat(s.cap), tanh(div(score, splat(s.cap))));
  if (s.slope > 0) {
    static const float kPlaces[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    score = fma(splat(-s.slope), abs(add(splat(float(distance)), load(kPlaces))), score);
  }
  return score;
}
// The slope of ALiBi of one of `heads` heads.
inline float alibi_slope(float bias, int32_t head, int32_t heads) {
  int32_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  const float step = bias * -0.693147181f / float(whole);
  const float exponent = head < whole ? step * float(head + 1) : step * 0.5f * float(2 * (head - whole) + 1);
  float slope[16];
  store(slope, exp(splat(exponent)));
  return slope[0];
}

// One page of keys and values, and the positions in it that the row may see: from .. to - 1.
struct Span {
  const uint8_t *keys, *values;
  int32_t from, to;
  int32_t distance;                // of its first position from the row's own
  const uint8_t* next_keys;        // of the next page, or null: nothing is worth asking for
  int64_t key_bytes, value_bytes;  // of a head in a page
};

// Asks memory for one of `parts` parts of what is read after this.
inline void fetch_part(const uint8_t* p, int64_t bytes, int part, int parts) {
  for (int64_t i = bytes / 64 * part / parts; i < bytes / 64 * (part + 1) / parts; i++)
    __builtin_prefetch(p + 64 * i, 0, 2);
}

// One head's scores of a page (four times 16 keys) to weights, under the highest score so far. Gives the
// factor of what was summed under the old one.
[[gnu::noinline]] inline F weights_of_page(F* score, F scale, const Shaping& shaping, const Span& page,
                                           float& highest, float& total, float* weight) {
  const int from = page.from, to = page.to;
  F top = splat(-__builtin_inff());
  F part = splat(0.f);  // of the sum of weights; NaN when a score is not finite: exp() and max() lose those
  for (int s = 0; s < 4; s++) {
    score[s] = mul(score[s], scale);
    part = add(part, keep(mul(score[s], splat(0.f)), from - 16 * s, to - 16 * s, 0.f));
    if (shaping.cap > 0 || shaping.slope > 0) score[s] = shaped(score[s], shaping, page.distance + 16 * s);
    score[s] = keep(score[s], from - 16 * s, to - 16 * s, -__builtin_inff());
    top = max(top, score[s]);
  }
  const float page_highest = tree_max(top);
  const float now = page_highest > highest ? page_highest : highest;
  for (int s = 0; s < 4; s++) {
    const F w = keep(exp(sub(score[s], splat(now))), from - 16 * s, to - 16 * s, 0.f);
    store(weight + 16 * s, w);
    part = add(part, w);
  }
  const F fade = exp(splat(highest - now));
  float fade_once[16];
  store(fade_once, fade);
  total = total * fade_once[0] + tree_sum(part);
  highest = now;
  return fade;
}

// What H query heads of a row have seen so far. Every head's numbers are its own: H changes no bits.
template <class R, int H>
struct Attending {
  int32_t hd, vd, vectors;  // of keys, of values; vectors of values
  const float* q;           // H heads of hd values
  F scale;
  Shaping shaping[H];
  float highest[H], total[H];
  float sum[H][gimbal::kMaxHeadDim];

  // Of the heads from `head` on.
  void begin(const CpuTask& t, const float* heads, int64_t head) {
    hd = int32_t(t.in[0]->dim[0]), vd = int32_t(t.out->dim[0]), vectors = (vd + 15) / 16;
    q = heads, scale = splat(float(t.op->param.f[0]));
    const auto alibi = float(t.op->param.f[2]);
    for (int h = 0; h < H; h++) {
      highest[h] = -__builtin_inff(), total[h] = 0;
      shaping[h] = {float(t.op->param.f[1]),
                    alibi > 0 ? alibi_slope(alibi, int32_t(head) + h, int32_t(t.in[0]->dim[1])) : 0};
      if (t.op->inputs > 7) {  // a score that came before all others
        highest[h] = read<float>(t.x[7] + 4 * (head + h));
        total[h] = highest[h] * 0 + 1;
      }
      for (int32_t v = 0; v < vectors; v++) store(sum[h] + 16 * v, splat(0.f));
    }
  }

  // Some dimensions of twice sixteen keys.
  template <int Half>
  inline void products(const R& a, const R& b, const float* x, int32_t dimensions, F* score_a,
                       F* score_b) const {
    for (int32_t d = 0; d < dimensions; d++) {
      const F ka = a.template key<Half>(d), kb = b.template key<Half>(d);
      for (int h = 0; h < H; h++) {
        const F one = splat(x[h * hd + d]);
        score_a[h] = fma(one, ka, score_a[h]);
        score_b[h] = fma(one, kb, score_b[h]);
      }
    }
  }

  void page(const Span& p) {
    F score[H][4];
    for (int s = 0; s < 4; s += 2) {
      F a[H], b[H];
      for (int h = 0; h < H; h++) a[h] = b[h] = splat(0.f);
      for (int32_t d = 0; d < hd; d += 32) {
        if (p.next_keys)
          fetch_part(p.values, p.value_bytes, s / 2 * ((hd + 31) / 32) + d / 32, (hd + 31) / 32 * 2);
        const R low = R::keys(p.keys, hd, s, d), high = R::keys(p.keys, hd, s + 1, d);
        if constexpr (R::quantized) {
          products<0>(low, high, q + d, 16, a, b);
          products<1>(low, high, q + d + 16, 16, a, b);
        } else {
          products<0>(low, high, q + d, hd - d < 32 ? hd - d : 32, a, b);
        }
      }
      for (int h = 0; h < H; h++) score[h][s] = a[h], score[h][s + 1] = b[h];
    }
    float weight[H][kPagePositions];
    F fade[H];
    for (int h = 0; h < H; h++)
      fade[h] = weights_of_page(score[h], scale, shaping[h], p, highest[h], total[h], weight[h]);
    int32_t v = 0;
    for (; v + 2 <= vectors; v += 2) weigh<2>(p, v, weight, fade);
    if constexpr (!R::quantized)  // heads of a quantized cache are whole pairs of vectors
      for (; v < vectors; v++) weigh<1>(p, v, weight, fade);
  }

  // Vectors v .. v + N - 1 of the values.
  template <int N>
  inline void weigh(const Span& p, int32_t v, const float (*weight)[kPagePositions], const F* fade) {
    if (p.next_keys) fetch_part(p.next_keys, p.key_bytes, v / N, (vectors + N - 1) / N);
    F acc[H][N];
    for (int h = 0; h < H; h++)
      for (int n = 0; n < N; n++) acc[h][n] = mul(load(sum[h] + 16 * (v + n)), fade[h]);
    for (int32_t s = p.from / 16; s * 16 < p.to; s++) {
      const R values = R::values(p.values, vd, s, v);
      const int32_t end = p.to - 16 * s < 16 ? p.to - 16 * s : 16;
      for (int32_t j = p.from > 16 * s ? p.from - 16 * s : 0; j < end; j++) {
        F value[N];
        values.template value<N>(j, value);
        for (int h = 0; h < H; h++)
          for (int n = 0; n < N; n++) acc[h][n] = fma(splat(weight[h][16 * s + j]), value[n], acc[h][n]);
      }
    }
    for (int h = 0; h < H; h++)
      for (int n = 0; n < N; n++) store(sum[h] + 16 * (v + n), acc[h][n]);
  }

  void finish(float* y) const {
    for (int h = 0; h < H; h++)
      for (int32_t v = 0; v < vectors; v++)
        store_part(y + h * vd + 16 * v, div(load(sum[h] + 16 * v), splat(total[h])),
                   vd - 16 * v < 16 ? vd - 16 * v : 16);
  }
};

// So many rows find the cache in the nearer caches: the ones before have read it.
constexpr int32_t kRowsThatReread = 8;

template <class R, int H>
inline void attend(const CpuTask& t, const Pages& pages, int64_t row, int64_t kv, int64_t head) {
  const auto hd = int32_t(t.in[0]->dim[0]), heads = int32_t(t.in[0]->dim[1]),
             kv_heads = int32_t(t.in[1]->dim[1]);
  const int64_t key_head = head_bytes(*t.in[1]), value_head = head_bytes(*t.in[2]);
  const int32_t position = position_of(t, row), sequence = read<int32_t>(t.x[4] + 4 * row);
  const Seen seen = seen_by(t, row);
  Attending<R, H> a;
  a.begin(t, reinterpret_cast<const float*>(t.x[0]) + (row * heads + head) * hd, head);
  auto page_at = [&](int32_t base) { return pages(sequence, base) * kv_heads + kv; };
  for (int32_t base = seen.first / kPagePositions * kPagePositions; base <= seen.last;
       base += kPagePositions) {
    const int64_t page = page_at(base);
    const bool last = base + kPagePositions > seen.last, few = t.rows < kRowsThatReread;
    a.page({t.x[1] + page * key_head, t.x[2] + page * value_head, seen.first > base ? seen.first - base : 0,
            last ? seen.last - base + 1 : kPagePositions, base - position,
            last || !few ? nullptr : t.x[1] + page_at(base + kPagePositions) * key_head, key_head,
            value_head});
  }
  a.finish(reinterpret_cast<float*>(t.y) + (row * heads + head) * a.vd);
}

template <class R>
void attention(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t kv_heads = t.in[1]->dim[1], group = t.in[0]->dim[1] / kv_heads;
  const Pages pages = pages_of(t, 5);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t row = unit / kv_heads, kv = unit % kv_heads, past = (kv + 1) * group;
    int64_t head = kv * group;
    for (; head + 4 <= past; head += 4) attend<R, 4>(t, pages, row, kv, head);
    for (; head + 2 <= past; head += 2) attend<R, 2>(t, pages, row, kv, head);
    for (; head < past; head++) attend<R, 1>(t, pages, row, kv, head);
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
  const auto hd = int32_t(t.in[0]->dim[0]), heads = int32_t(t.in[0]->dim[1]);
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
  return {t.rows, 2.0 * double(t.in[1]->dim[0] * t.in[1]->dim[1]) * t.rows};
}
