// Ops with a state that every row of a sequence changes. A work item is a piece of the state, and goes
// through all rows of the step in order: lanes are channels of the state, which do not know of each other,
// and the state is in memory from row to row. So neither the threads nor how a text is divided into steps
// change a bit.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/memory.h"
#include "backends/cpu/kernels/rows.h"

// Where a row's state begins: inputs `state`, then the sequence, then the pages.
inline float* state_of(const CpuTask& t, int state, int64_t row) {
  const int32_t sequence = read<int32_t>(t.x[state + 1] + 4 * row),
                page = read<int32_t>(t.x[state + 2] + 4 * int64_t(sequence) * t.in[state + 2]->dim[0]);
  return reinterpret_cast<float*>(const_cast<unsigned char*>(t.x[state])) + page * t.in[state]->dim[0];
}
inline int left(int64_t n, int64_t at) { return n - at < 16 ? int(n - at) : 16; }

// ---- short_conv: an item is 16 channels
inline CpuWork conv_work(const CpuTask& t) {
  return {(t.in[0]->dim[0] + 15) / 16, 2.0 * double(t.in[1]->dim[0]) * t.rows};
}
inline void short_conv(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t c = t.in[0]->dim[0], taps = t.in[1]->dim[0] / c;
  const auto* weight = reinterpret_cast<const float*>(t.x[1]);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t first = unit * 16;
    const int part = left(c, first);
    float tap[gimbal::kMaxTaps][16] = {};
    for (int64_t j = 0; j < taps; j++)
      for (int i = 0; i < part; i++) tap[j][i] = weight[(first + i) * taps + j];
    for (int64_t row = 0; row < t.rows; row++) {
      float* state = state_of(t, 2, row) + first;
      F sum = splat(0.f), now = load_part(row_of(t, 0, row, c) + first, part);
      for (int64_t j = 0; j + 1 < taps; j++) {
        const F old = load_part(state + j * c, part);
        sum = fma(load(tap[j]), old, sum);
        if (j > 0) store_part(state + (j - 1) * c, old, part);
      }
      if (taps > 1) store_part(state + (taps - 2) * c, now, part);
      sum = fma(load(tap[taps - 1]), now, sum);
      if (t.op->inputs > 5) sum = add(sum, load_part(reinterpret_cast<const float*>(t.x[5]) + first, part));
      store_part(out_row(t, row, c) + first, sum, part);
    }
  }
}

// ---- selective_scan: an item is 16 channels; the state is [N][channels]
inline CpuWork scan_work(const CpuTask& t) {
  const int64_t channels = t.in[0]->dim[0] * t.in[0]->dim[1];
  return {(channels + 15) / 16, 8.0 * double(channels * t.in[3]->dim[0]) * t.rows};
}
inline void selective_scan(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1], channels = hd * heads, n = t.in[3]->dim[0],
                groups = t.in[3]->dim[1];
  const bool by_place = t.in[2]->dim[0] != heads;  // a has N values for each head
  const auto* a = reinterpret_cast<const float*>(t.x[2]);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t first = unit * 16;
    const int part = left(channels, first);
    int64_t head[16], group[16];
    for (int i = 0; i < 16; i++) {
      head[i] = (first + (i < part ? i : 0)) / hd;
      group[i] = head[i] / (heads / groups);
    }
    const bool one_group = group[0] == group[part - 1];
    for (int64_t row = 0; row < t.rows; row++) {
      float* state = state_of(t, 5, row) + first;
      const float *b = row_of(t, 3, row, n * groups), *c = row_of(t, 4, row, n * groups);
      float at[16];
      for (int i = 0; i < 16; i++) at[i] = row_of(t, 1, row, heads)[head[i]];
      const F step = load(at), dx = mul(step, load_part(row_of(t, 0, row, channels) + first, part));
      F decay = splat(0.f), sum = splat(0.f);
      if (!by_place) {
        for (int i = 0; i < 16; i++) at[i] = a[head[i]];
        decay = exp(mul(step, load(at)));
      }
      for (int64_t j = 0; j < n; j++) {
        if (by_place) {
          for (int i = 0; i < 16; i++) at[i] = a[head[i] * n + j];
          decay = exp(mul(step, load(at)));
        }
        F bj = splat(b[group[0] * n + j]), cj = splat(c[group[0] * n + j]);
        if (!one_group) {
          float of_b[16], of_c[16];
          for (int i = 0; i < 16; i++) of_b[i] = b[group[i] * n + j], of_c[i] = c[group[i] * n + j];
          bj = load(of_b), cj = load(of_c);
        }
        const F now = fma(load_part(state + j * channels, part), decay, mul(dx, bj));
        store_part(state + j * channels, now, part);
        sum = fma(now, cj, sum);
      }
      store_part(out_row(t, row, channels) + first, sum, part);
    }
  }
}

// ---- delta_rule: an item is 16 values of a head; the state is [heads][keys][values]
inline CpuWork delta_work(const CpuTask& t) {
  const int64_t d = t.in[2]->dim[0], heads = t.in[2]->dim[1];
  return {heads * ((d + 15) / 16), 8.0 * double(t.in[0]->dim[0] * d * heads) * t.rows};
}
inline void delta_rule(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t s = t.in[0]->dim[0], few = t.in[0]->dim[1], d = t.in[2]->dim[0], heads = t.in[2]->dim[1],
                parts = (d + 15) / 16;
  const bool modulo = gimbal::HeadMap(t.op->param.i[0]) == gimbal::HeadMap::Modulo;
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t head = unit / parts, first = unit % parts * 16,
                  key = modulo ? head % few : head / (heads / few);
    const int part = left(d, first);
    for (int64_t row = 0; row < t.rows; row++) {
      float* state = state_of(t, 5, row) + head * s * d + first;
      const float *q = row_of(t, 0, row, s * few) + key * s, *k = row_of(t, 1, row, s * few) + key * s;
      const F decay = exp(splat(row_of(t, 4, row, heads)[head]));
      F found = splat(0.f), sum = splat(0.f);
      for (int64_t j = 0; j < s; j++) {
        const F now = mul(load_part(state + j * d, part), decay);
        found = fma(now, splat(k[j]), found);
        store_part(state + j * d, now, part);
      }
      const F wanted = load_part(row_of(t, 2, row, d * heads) + head * d + first, part),
              change = mul(sub(wanted, found), splat(row_of(t, 3, row, heads)[head]));
      for (int64_t j = 0; j < s; j++) {
        const F now = fma(splat(k[j]), change, load_part(state + j * d, part));
        store_part(state + j * d, now, part);
        sum = fma(now, splat(q[j]), sum);
      }
      store_part(out_row(t, row, d * heads) + head * d + first, sum, part);
    }
  }
}
