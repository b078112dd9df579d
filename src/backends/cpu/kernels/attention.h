// Attention over a paged cache, and writing to it. The keys are walked in tiles of one page (64 positions)
// with a running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018),
// so what a row computes depends on its position alone: not on the batch it came in, nor on how the prompt
// was split.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/memory.h"

// The element types of a cache.
struct CacheF32 {
  using Element = float;
  static constexpr DType type = DType::F32;
  static inline F get(const float* p) { return load(p); }
  static inline float from(float x) { return x; }
};
struct CacheF16 {
  using Element = uint16_t;
  static constexpr DType type = DType::F16;
  static inline F get(const uint16_t* p) { return load(p); }
  static inline uint16_t from(float x) { return float_to_half(x); }
};
struct CacheBF16 {
  using Element = uint16_t;
  static constexpr DType type = DType::BF16;
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

// A unit is a row and a KV head: the query heads that share it read its keys and values together.
inline CpuWork attention_work(const CpuTask& t) {
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += read<int32_t>(t.x[3] + 4 * r) + 1;
  return {int64_t(t.rows) * t.in[1]->dim[1], 4.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * positions};
}

// One page of keys and values, and the positions in it that the row may see: from .. to - 1.
template <class E>
struct Span {
  const E *keys, *values;
  int32_t from, to;
};

// What H query heads of a row have seen so far. Every head's numbers are its own: H changes no bits.
template <class C, int H>
struct Attending {
  using E = typename C::Element;
  int32_t hd, vectors;
  const float* q;  // H heads of hd values
  F scale;
  float highest[H], total[H];
  float sum[H][gimbal::kMostHeadDim];

  void begin(const CpuTask& t, const float* heads) {
    hd = t.in[0]->dim[0], vectors = (hd + 15) / 16;
    q = heads, scale = splat(t.op->param.f[0]);
    for (int h = 0; h < H; h++) {
      highest[h] = -__builtin_inff(), total[h] = 0;
      for (int32_t v = 0; v < vectors; v++) store(sum[h] + 16 * v, splat(0.f));
    }
  }

  void page(const Span<E>& p) {
    F score[4][H];
    for (int s = 0; s < 4; s += 2) {
      for (int h = 0; h < H; h++) score[s][h] = score[s + 1][h] = splat(0.f);
      const E *a = p.keys + s * hd * 16, *b = a + hd * 16;
      for (int32_t d = 0; d < hd; d++) {
        const F ka = C::get(a + 16 * d), kb = C::get(b + 16 * d);
        for (int h = 0; h < H; h++) {
          const F one = splat(q[h * hd + d]);
          score[s][h] = fma(one, ka, score[s][h]);
          score[s + 1][h] = fma(one, kb, score[s + 1][h]);
        }
      }
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
  inline void weigh(const Span<E>& p, int32_t v, const float (*weight)[kPagePositions], const F* fade) {
    F acc[H][N];
    for (int h = 0; h < H; h++)
      for (int n = 0; n < N; n++) acc[h][n] = mul(load(sum[h] + 16 * (v + n)), fade[h]);
    for (int32_t j = p.from; j < p.to; j++) {
      F value[N];
      for (int n = 0; n < N; n++) value[n] = C::get(p.values + (j * vectors + v + n) * 16);
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
  using E = typename C::Element;
  const int32_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1], kv_heads = t.in[1]->dim[1],
                window = t.op->param.i[1];
  const int64_t key_head = gimbal::cpu::cache_head_values(true, hd),
                value_head = gimbal::cpu::cache_head_values(false, hd);
  const int32_t position = read<int32_t>(t.x[3] + 4 * row), sequence = read<int32_t>(t.x[4] + 4 * row);
  const int32_t first = window > 0 && position >= window ? position - window + 1 : 0;
  Attending<C, H> a;
  a.begin(t, reinterpret_cast<const float*>(t.x[0]) + (row * heads + head) * hd);
  for (int32_t base = first / kPagePositions * kPagePositions; base <= position; base += kPagePositions) {
    const int64_t page = pages(sequence, base) * kv_heads + kv;
    a.page({reinterpret_cast<const E*>(t.x[1]) + page * key_head,
            reinterpret_cast<const E*>(t.x[2]) + page * value_head, first > base ? first - base : 0,
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

template <class C>
void cache_write(const CpuTask& t, int64_t begin, int64_t end) {
  using E = typename C::Element;
  const int32_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1];
  const bool is_key = t.op->param.i[0] != 0;
  const int64_t head = gimbal::cpu::cache_head_values(is_key, hd), padded = gimbal::cpu::up(hd, 16);
  const Pages pages = pages_of(t, 4);
  for (int64_t row = begin; row < end; row++) {
    const int32_t position = read<int32_t>(t.x[2] + 4 * row), sequence = read<int32_t>(t.x[3] + 4 * row),
                  at = position % kPagePositions;
    for (int32_t h = 0; h < heads; h++) {
      const float* x = reinterpret_cast<const float*>(t.x[1]) + (row * heads + h) * hd;
      E* y = reinterpret_cast<E*>(t.y) + (pages(sequence, position) * heads + h) * head;
      for (int32_t d = 0; d < hd; d++)
        y[is_key ? (at / 16 * hd + d) * 16 + at % 16 : at * padded + d] = C::from(x[d]);
    }
  }
}
inline CpuWork cache_write_work(const CpuTask& t) {
  return {t.rows, 2.0 * t.in[1]->dim[0] * t.in[1]->dim[1] * t.rows};
}
