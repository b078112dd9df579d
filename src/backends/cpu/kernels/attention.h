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

inline CpuWork attention_work(const CpuTask& t) {
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += read<int32_t>(t.x[3] + 4 * r) + 1;
  return {int64_t(t.rows) * t.in[0]->dim[1], 4.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * positions};
}

constexpr int kMostHeadVectors = gimbal::kMostHeadDim / 16;

template <class C>
void attention(const CpuTask& t, int64_t begin, int64_t end) {
  using E = typename C::Element;
  const int32_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1], kv_heads = t.in[1]->dim[1],
                window = t.op->param.i[1];
  const int32_t vectors = (hd + 15) / 16;
  const int64_t key_head = gimbal::cpu::cache_head_values(true, hd),
                value_head = gimbal::cpu::cache_head_values(false, hd);
  const Pages pages = pages_of(t, 5);
  const F scale = splat(t.op->param.f[0]);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t row = unit / heads, kv = unit % heads / (heads / kv_heads);
    const float* q = reinterpret_cast<const float*>(t.x[0]) + unit * hd;
    const int32_t position = read<int32_t>(t.x[3] + 4 * row), sequence = read<int32_t>(t.x[4] + 4 * row);
    const int32_t first = window > 0 && position >= window ? position - window + 1 : 0;
    F sum[kMostHeadVectors];
    for (int32_t v = 0; v < vectors; v++) sum[v] = splat(0.f);
    float highest = -__builtin_inff(), total = 0;
    for (int32_t base = first / kPagePositions * kPagePositions; base <= position; base += kPagePositions) {
      const int64_t page = pages(sequence, base) * kv_heads + kv;
      const E* keys = reinterpret_cast<const E*>(t.x[1]) + page * key_head;
      const E* values = reinterpret_cast<const E*>(t.x[2]) + page * value_head;
      const int32_t from = first > base ? first - base : 0,
                    to = position - base + 1 < kPagePositions ? position - base + 1 : kPagePositions;
      F score[4];
      F top = splat(-__builtin_inff());
      for (int s = 0; s < 4; s++) {
        score[s] = splat(0.f);
        for (int32_t d = 0; d < hd; d++)
          score[s] = fma(splat(q[d]), C::get(keys + (s * hd + d) * 16), score[s]);
        score[s] = keep(mul(score[s], scale), from - 16 * s, to - 16 * s, -__builtin_inff());
        top = max(top, score[s]);
      }
      const float tile_highest = tree_max(top);
      const float now = tile_highest > highest ? tile_highest : highest;
      float weight[kPagePositions];
      F part = splat(0.f);
      for (int s = 0; s < 4; s++) {
        F p = keep(exp(sub(score[s], splat(now))), from - 16 * s, to - 16 * s, 0.f);
        store(weight + 16 * s, p);
        part = add(part, p);
      }
      const F fade = exp(splat(highest - now));  // of what was summed under the old maximum
      float fade_once[16];
      store(fade_once, fade);
      total = total * fade_once[0] + tree_sum(part);
      highest = now;
      for (int32_t v = 0; v < vectors; v += 4) {
        const int32_t n = vectors - v < 4 ? vectors - v : 4;
        F acc[4];
        for (int32_t i = 0; i < n; i++) acc[i] = mul(sum[v + i], fade);
        for (int32_t j = from; j < to; j++)
          for (int32_t i = 0; i < n; i++)
            acc[i] = fma(splat(weight[j]), C::get(values + (j * vectors + v + i) * 16), acc[i]);
        for (int32_t i = 0; i < n; i++) sum[v + i] = acc[i];
      }
    }
    float* y = reinterpret_cast<float*>(t.y) + unit * hd;
    for (int32_t v = 0; v < vectors; v++)
      store_part(y + 16 * v, div(sum[v], splat(total)), hd - 16 * v < 16 ? hd - 16 * v : 16);
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
