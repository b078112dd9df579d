// One page of a KV head, read for several query heads at once: of one row, or of all rows that see the same
// positions of it. Queries share no sums, so their number changes no bits.
#pragma once
#include "backends/cpu/kernels/cache_blocks.h"
#include "backends/cpu/kernels/memory.h"

// The location of a sequence's positions in a paged cache.

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

// Bytes of one head in one page: heads and pages are of equal size and contiguous.
inline int64_t head_bytes(const gimbal_value& cache) {
  return int64_t(cache.bytes) / (cache.dim[1] * cache.dim[3]);
}

// The element types of unquantized caches.
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

// The decoder of a page: keys() gives sixteen keys from a dimension on, values() two vectors of dimensions of
// sixteen positions, or one of the last few. Half: 0, or which 16 dimensions of a quantized block.
template <class C>
struct Plain {
  static constexpr bool quantized = false;
  const typename C::Element* at;
  int64_t stride;
  static inline Plain keys(const uint8_t* page, int32_t hd, int s, int32_t d) {
    return {reinterpret_cast<const typename C::Element*>(page) + (s * hd + d) * 16, 16};
  }
  static inline Plain values(const uint8_t* page, int32_t vd, int s, int32_t v) {
    const int64_t stride = gimbal::cpu::up(vd, 16);
    return {reinterpret_cast<const typename C::Element*>(page) + s * 16 * stride + v * 16, stride};
  }
  template <int Half>
  inline F key(int d) const {
    return C::get(at + 16 * d);
  }
  template <int N>
  inline void value(int64_t j, F* y) const {
    for (int n = 0; n < N; n++) y[n] = C::get(at + j * stride + 16 * n);
  }
};

// A KV head's part of one page, and the positions visible to the queries: from .. to - 1.
struct Page {
  const uint8_t *keys, *values;
  const uint8_t* next_keys;        // of the page that is read next, or null
  bool first;                      // the first queries to read it: they prefetch the next one
  int32_t hd, vd;                  // of keys, of values
  int32_t key_lines, value_lines;  // of a head in a page, in the cache
  int32_t from, to;
};

// Prefetches lines, evenly spread over other work.
class Asking {
 public:
  Asking(const uint8_t* begin, int32_t lines, int32_t steps)
      : at_(begin), end_(begin + 64 * int64_t(lines)), step_((lines + steps - 1) / steps) {}
  void step() {
    for (int32_t i = 0; i < step_ && at_ < end_; i++, at_ += 64) __builtin_prefetch(at_, 0, 2);
  }

 private:
  const uint8_t *at_, *end_;
  int32_t step_;
};

constexpr int kSizes = sizeof kVectorsOfQueries / sizeof *kVectorsOfQueries,
              kQueriesTogether = 1 << (kSizes - 1);
template <int N>
constexpr int kVectors = kVectorsOfQueries[__builtin_ctz(unsigned(N))];

// Some dimensions of 16 T keys: score[t][n] += x[d][n] key.
template <int Half, class R, int T, int N>
[[gnu::always_inline]] inline void products(const R* keys, const float* x, int32_t stride, int32_t dimensions,
                                            F (*score)[N]) {
  for (int32_t d = 0; d < dimensions; d++, x += stride) {
    F key[T];
    for (int t = 0; t < T; t++) key[t] = keys[t].template key<Half>(d);
    for (int n = 0; n < N; n++) {
      const F one = splat(x[n]);
      for (int t = 0; t < T; t++) score[t][n] = fma(one, key[t], score[t][n]);
    }
  }
}

// The products of a page's keys with N queries. Dimension d of query n is q[d * stride + n].
template <class R, int N>
[[gnu::noinline]] void scores_of_page(const Page& p, const float* q, int32_t stride,
                                      float (*score)[kPagePositions]) {
  constexpr int T = kVectors<N>;
  const int32_t hd = p.hd;
  Asking asking(p.values, p.first ? p.value_lines : 0, (hd + 31) / 32 * (4 / T));
  for (int s = 0; s < 4; s += T) {
    F sum[T][N];
    for (int t = 0; t < T; t++)
      for (int n = 0; n < N; n++) sum[t][n] = splat(0.f);
    const float* x = q;
    for (int32_t d = 0; d < hd; d += 32, x += 32 * int64_t(stride)) {
      asking.step();
      R keys[T];
      for (int t = 0; t < T; t++) keys[t] = R::keys(p.keys, hd, s + t, d);
      if constexpr (R::quantized) {
        products<0, R, T, N>(keys, x, stride, 16, sum);
        products<1, R, T, N>(keys, x + 16 * stride, stride, 16, sum);
      } else {
        products<0, R, T, N>(keys, x, stride, hd - d < 32 ? hd - d : 32, sum);
      }
    }
    for (int n = 0; n < N; n++)
      for (int t = 0; t < T; t++) store(score[n] + 16 * (s + t), sum[t][n]);
  }
}

// Adds vectors v .. v + V - 1 of the values to the sums of N queries.
template <class R, int N, int V>
[[gnu::always_inline]] inline void weigh(const Page& p, int32_t v, const float (*weight)[kPagePositions],
                                         const float* fade, float* sum, int32_t stride, int32_t queries) {
  F acc[N][V];
  for (int n = 0; n < N; n++)
    for (int i = 0; i < V; i++)
      acc[n][i] = mul(load(sum + (n < queries ? n : 0) * stride + 16 * (v + i)), splat(fade[n]));
  for (int32_t s = p.from / 16; s * 16 < p.to; s++) {
    R values[(V + 1) / 2];
    for (int i = 0; i < V; i += 2) values[i / 2] = R::values(p.values, p.vd, s, v + i);
    const float* w = weight[0] + 16 * s;
    const int64_t end = p.to - 16 * s < 16 ? p.to - 16 * s : 16;
#pragma GCC unroll 1
    for (int64_t j = p.from > 16 * s ? p.from - 16 * s : 0; j < end; j++) {
      F value[V];
      for (int i = 0; i < V; i += 2) values[i / 2].template value<V == 1 ? 1 : 2>(j, value + i);
      for (int n = 0; n < N; n++) {
        const F one = splat(w[n * kPagePositions + j]);
        for (int i = 0; i < V; i++) acc[n][i] = fma(one, value[i], acc[n][i]);
      }
    }
  }
  for (int n = 0; n < N; n++)
    if (n < queries)
      for (int i = 0; i < V; i++) store(sum + n * stride + 16 * (v + i), acc[n][i]);
}

// The sums of `queries` of N queries, `stride` floats each, after a page: sum * fade + the weighted values.
template <class R, int N>
[[gnu::noinline]] void weigh_page(const Page& p, const float (*weight)[kPagePositions], const float* fade,
                                  float* sum, int32_t queries) {
  const int32_t vectors = (p.vd + 15) / 16, stride = 16 * vectors;
  if constexpr (R::quantized && N > 8) {  // too many sums for two vectors, which are decoded together
    weigh_page<R, N / 2>(p, weight, fade, sum, queries);
    Page again = p;
    again.first = false;
    if (queries > N / 2)
      weigh_page<R, N / 2>(again, weight + N / 2, fade + N / 2, sum + N / 2 * stride, queries - N / 2);
    return;
  }
  constexpr int V = R::quantized && kVectors<N> < 2 ? 2 : kVectors<N>;
  Asking asking(p.next_keys, p.first && p.next_keys ? p.key_lines : 0, (vectors + V - 1) / V);
  int32_t v = 0;
  for (; v + V <= vectors; v += V) {
    asking.step();
    weigh<R, N, V>(p, v, weight, fade, sum, stride, queries);
  }
  constexpr int kRest = R::quantized ? 2 : 1;  // heads of a quantized cache are whole pairs of vectors
  if constexpr (V > kRest)
    for (; v < vectors; v += kRest) weigh<R, N, kRest>(p, v, weight, fade, sum, stride, queries);
}
