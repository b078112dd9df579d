// Of an indexer: the scores of all positions of a row's sequence, and of these the first ones.
#pragma once

#include "backends/cpu/kernels/attention_page.h"
#include "backends/cpu/kernels/sort.h"

constexpr int kHeadsOfIndex = kQueriesTogether;

inline CpuWork index_work(const CpuTask& t) {
  const gimbal_value& q = *t.in[0];
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += read<int32_t>(t.x[3] + 4 * r) + 1;
  return {t.rows, 2.0 * double(q.dim[0] * q.dim[1]) * positions};
}

// y + w * max(score, 0) of sixteen positions; NaN stays NaN.
inline F with_head(F y, float w, F score) {
  const F zero = splat(0.f);
  return fma(splat(w), add(max(score, zero), mul(score, zero)), y);
}

template <class R>
void index_scores(const CpuTask& t, int64_t begin, int64_t end) {
  const auto hd = int32_t(t.in[0]->dim[0]), heads = int32_t(t.in[0]->dim[1]);
  const int64_t n = t.out->dim[0], key_head = head_bytes(*t.in[1]);
  const Pages pages = pages_of(t, 5);
  Page page{};
  page.hd = hd, page.key_lines = int32_t(key_head / 64);
  alignas(64) float q[kHeadsOfIndex * gimbal::kMaxHeadDim + kQueriesTogether];
  alignas(64) float score[kHeadsOfIndex][kPagePositions];
  for (int64_t row = begin; row < end; row++) {
    auto* y = reinterpret_cast<float*>(t.y) + row * n;
    const int32_t last = read<int32_t>(t.x[3] + 4 * row), sequence = read<int32_t>(t.x[4] + 4 * row);
    const auto* x = reinterpret_cast<const float*>(t.x[0]) + row * heads * hd;
    const auto* weights = reinterpret_cast<const float*>(t.x[2]) + row * heads;
    for (int64_t i = 0; i < n; i += 16) store(y + i, splat(0.f));
    for (int32_t head = 0; head < heads; head += kHeadsOfIndex) {
      const int32_t some = heads - head < kHeadsOfIndex ? heads - head : kHeadsOfIndex;
      for (int32_t d = 0; d < hd; d++)
        for (int32_t h = 0; h < kHeadsOfIndex; h++)
          q[d * kHeadsOfIndex + h] = h < some ? x[(head + h) * hd + d] : 0;
      for (int32_t base = 0; base <= last; base += kPagePositions) {
        page.keys = t.x[1] + pages(sequence, base) * key_head;
        scores_of_page<R, kHeadsOfIndex>(page, q, kHeadsOfIndex, score);
        for (int32_t h = 0; h < some; h++)
          for (int s = 0; s < kPagePositions; s += 16)
            store(y + base + s, with_head(load(y + base + s), weights[head + h], load(score[h] + s)));
      }
    }
    for (int64_t i = last + 1; i < n; i++) y[i] = gimbal::kHidden;
  }
}

inline void keep_top(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t n = t.in[0]->dim[0], k = t.in[1]->dim[0] / 2;
  for (int64_t row = begin; row < end; row++) {
    const uint8_t *x = t.x[0] + row * n * 4, *top = t.x[1] + row * 2 * k * 4;
    const uint32_t least = sort_key(bits_at(top, k - 1));
    const auto place = int64_t(read<float>(top + 4 * (2 * k - 1)));
    auto* y = reinterpret_cast<float*>(t.y) + row * n;
    for (int64_t i = 0; i < n; i++) {
      const uint32_t key = sort_key(bits_at(x, i));
      y[i] = key > least || (key == least && i <= place) ? 0.f : gimbal::kHidden;
    }
  }
}
