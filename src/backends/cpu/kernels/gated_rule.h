// Linear attention whose state forgets by key (ops/defs/gated_rule.cpp). As kernels/recurrent.h: a work item
// is a part of the state, and processes all rows of the step in order.
#pragma once

#include "backends/cpu/kernels/recurrent.h"

// An item is two pieces of the state, as of delta_rule.
inline int64_t gated_items(const CpuTask& t) { return (t.in[3]->dim[0] + 31) / 32; }  // of a head
inline CpuWork gated_work(const CpuTask& t) {
  const int64_t heads = t.in[0]->dim[1];
  return {heads * gated_items(t), 8.0 * double(t.in[0]->dim[0] * t.in[3]->dim[0] * heads) * t.rows};
}

// From value `first` of the head on: Pieces whole ones, or one that is not.
template <int Pieces, bool Whole>
inline void gated_pieces(const CpuTask& t, int64_t head, int64_t first) {
  const int64_t s = t.in[0]->dim[0], heads = t.in[0]->dim[1], d = t.in[3]->dim[0], few = t.in[3]->dim[1];
  const int64_t key = head / (heads / few);
  const bool before = t.op->param.i[0] != 0, complement = t.op->param.i[1] != 0, erases = t.op->inputs > 7;
  const int part = Whole ? 16 : left(d, first);
  for (int64_t row = 0; row < t.rows; row++) {
    float* const state = state_of(t, 4, row) + (head * d + first) * s;
    const float *q = row_of(t, 0, row, s * heads) + head * s, *fade = row_of(t, 1, row, s * heads) + head * s,
                *k = row_of(t, 2, row, s * few) + key * s, *v = row_of(t, 3, row, d * few) + key * d + first;
    float* const y = out_row(t, row, d * heads) + head * d + first;
    F x[Pieces], found[Pieces], sum[Pieces];
    for (int i = 0; i < Pieces; i++) x[i] = lanes<Whole>(v + 16 * i, part), found[i] = sum[i] = splat(0.f);
    const float *erased = nullptr, *added = nullptr;
    if (erases) {
      erased = row_of(t, 7, row, 2 * s * heads) + head * 2 * s, added = erased + s;
      for (int64_t j = 0; j < s; j++)
        for (int i = 0; i < Pieces; i++)
          found[i] = fma(lanes<Whole>(state + (i * s + j) * part, part), splat(erased[j]), found[i]);
    }
    for (int64_t j = 0; j < s; j++) {
      const F decay = splat(fade[j]),
              place = complement ? mul(splat(k[j]), sub(splat(1.f), decay)) : splat(k[j]);
      for (int i = 0; i < Pieces; i++) {
        float* const at = state + (i * s + j) * part;
        const F old = lanes<Whole>(at, part);
        F now = fma(old, decay, mul(place, x[i]));
        if (erases) now = fma(found[i], splat(added[j]), now);
        put_lanes<Whole>(at, now, part);
        sum[i] = fma(before ? old : now, splat(q[j]), sum[i]);
      }
    }
    for (int i = 0; i < Pieces; i++) put_lanes<Whole>(y + 16 * i, sum[i], part);
  }
}
inline void gated_rule(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t d = t.in[3]->dim[0], items = gated_items(t);
  for (int64_t item = begin; item < end; item++) {
    const int64_t head = item / items, first = item % items * 32;
    if (first + 32 <= d) {
      gated_pieces<2, true>(t, head, first);
      continue;
    }
    for (int64_t at = first; at < d; at += 16) {
      if (at + 16 <= d) gated_pieces<1, true>(t, head, at);
      else gated_pieces<1, false>(t, head, at);
    }
  }
}
