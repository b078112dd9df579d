// Ops with a state that every row of a sequence changes. A work item is a piece of the state, and processes
// all rows of the step in order. Lanes are independent channels of the state, and the state is in memory
// between rows, so neither threads nor the division of a text into steps change a bit. A piece of a scan or a
// rule is contiguous and has some kilobytes: it stays in the first-level cache from row to row, and memory
// delivers it as a stream. In a state of [N][channels] its lines would be a large power of two apart, and all
// would fall into the same few sets of every cache.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/memory.h"
#include "backends/cpu/kernels/rows.h"

// The start of a row's state: inputs `state`, then the sequence, then the pages.
inline float* state_of(const CpuTask& t, int state, int64_t row) {
  const int32_t sequence = read<int32_t>(t.x[state + 1] + 4 * row),
                page = read<int32_t>(t.x[state + 2] + 4 * int64_t(sequence) * t.in[state + 2]->dim[0]);
  return reinterpret_cast<float*>(const_cast<unsigned char*>(t.x[state])) + page * t.in[state]->dim[0];
}
inline int left(int64_t n, int64_t at) { return n - at < 16 ? int(n - at) : 16; }

// Sixteen neighbouring floats; fewer for the last piece of a state.
template <bool Whole>
inline F lanes(const float* p, int n) {
  if constexpr (Whole) return load(p);
  else return load_part(p, n);
}
template <bool Whole>
inline void put_lanes(float* p, F x, int n) {
  if constexpr (Whole) store(p, x);
  else store_part(p, x, n);
}

// ---- short_conv: an item is 16 channels
inline CpuWork conv_work(const CpuTask& t) {
  return {(t.in[0]->dim[0] + 15) / 16, 2.0 * double(t.in[1]->dim[0]) * t.rows};
}
template <bool Whole>
inline void convolve(const CpuTask& t, int64_t first) {
  const int64_t c = t.in[0]->dim[0], taps = t.in[1]->dim[0] / c;
  const auto* weight = reinterpret_cast<const float*>(t.x[1]);
  const int part = Whole ? 16 : left(c, first);
  float tap[gimbal::kMaxTaps][16];
  for (int64_t j = 0; j < taps; j++)
    for (int i = 0; i < 16; i++) tap[j][i] = weight[(first + (i < part ? i : 0)) * taps + j];
  for (int64_t row = 0; row < t.rows; row++) {
    float* state = state_of(t, 2, row) + first;
    F sum = splat(0.f), now = lanes<Whole>(row_of(t, 0, row, c) + first, part);
    for (int64_t j = 0; j + 1 < taps; j++) {
      const F old = lanes<Whole>(state + j * c, part);
      sum = fma(load(tap[j]), old, sum);
      if (j > 0) put_lanes<Whole>(state + (j - 1) * c, old, part);
    }
    if (taps > 1) put_lanes<Whole>(state + (taps - 2) * c, now, part);
    sum = fma(load(tap[taps - 1]), now, sum);
    if (t.op->inputs > 5) sum = add(sum, lanes<Whole>(reinterpret_cast<const float*>(t.x[5]) + first, part));
    put_lanes<Whole>(out_row(t, row, c) + first, sum, part);
  }
}
inline void short_conv(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    if (unit * 16 + 16 <= t.in[0]->dim[0]) convolve<true>(t, unit * 16);
    else convolve<false>(t, unit * 16);
  }
}

// ---- selective_scan: an item is a piece of the state: 16 channels, [N][16]
inline CpuWork scan_work(const CpuTask& t) {
  const int64_t channels = t.in[0]->dim[0] * t.in[0]->dim[1];
  return {(channels + 15) / 16, 8.0 * double(channels * t.in[3]->dim[0]) * t.rows};
}

// The shared parameters of a piece's channels: one per head, or per group of heads.
struct ScanPiece {
  const CpuTask& t;
  const int64_t hd, heads, channels, n, groups, first;
  const int part;
  const bool by_place;  // a has N values for each head
  bool one_group;
  int64_t head[16], group[16];  // of each channel; behind the last one, of the first

  ScanPiece(const CpuTask& task, int64_t unit)
      : t(task),
        hd(t.in[0]->dim[0]),
        heads(t.in[0]->dim[1]),
        channels(hd * heads),
        n(t.in[3]->dim[0]),
        groups(t.in[3]->dim[1]),
        first(unit * 16),
        part(left(channels, first)),
        by_place(t.in[2]->dim[0] != heads) {
    for (int i = 0; i < 16; i++) {
      head[i] = (first + (i < part ? i : 0)) / hd;
      group[i] = head[i] / (heads / groups);
    }
    one_group = group[0] == group[part - 1];
  }
  // x[of[i] * stride] for channel i.
  template <bool Same>
  F each(const float* x, const int64_t* of, int64_t stride) const {
    if constexpr (Same) return splat(x[of[0] * stride]);
    float v[16];
    for (int i = 0; i < 16; i++) v[i] = x[of[i] * stride];
    return load(v);
  }
};

// Neighbouring rows of a sequence go through each place of the state together: it is loaded and stored once
// for all of them, and their sums do not wait for each other. OneHead: all 16 channels have the same one, and
// a is one number of it.
template <int Rows, bool OneHead>
inline void scan_rows(const ScanPiece& p, int64_t row) {
  const CpuTask& t = p.t;
  const int64_t n = p.n, width = n * p.groups;
  const int part = OneHead ? 16 : p.part;
  float* const state = state_of(t, 5, row) + p.first * n;
  const auto* a = reinterpret_cast<const float*>(t.x[2]);
  const float *b = row_of(t, 3, row, width), *c = row_of(t, 4, row, width);
  F step[Rows], dx[Rows], decay[Rows], sum[Rows];
  for (int r = 0; r < Rows; r++) {
    step[r] = p.each<OneHead>(row_of(t, 1, row + r, p.heads), p.head, 1);
    dx[r] = mul(step[r], lanes<OneHead>(row_of(t, 0, row + r, p.channels) + p.first, part));
    if (OneHead || !p.by_place) decay[r] = exp(mul(step[r], p.each<OneHead>(a, p.head, 1)));
    sum[r] = splat(0.f);
  }
  for (int64_t j = 0; j < n; j++) {
    F now = lanes<OneHead>(state + j * part, part);
    if (!OneHead && p.by_place) {
      const F rate = p.each<false>(a + j, p.head, n);
      for (int r = 0; r < Rows; r++) decay[r] = exp(mul(step[r], rate));
    }
    for (int r = 0; r < Rows; r++) {
      const float *br = b + r * width + j, *cr = c + r * width + j;
      const bool one = OneHead || p.one_group;
      now =
          fma(now, decay[r], mul(dx[r], one ? p.each<true>(br, p.group, n) : p.each<false>(br, p.group, n)));
      sum[r] = fma(now, one ? p.each<true>(cr, p.group, n) : p.each<false>(cr, p.group, n), sum[r]);
    }
    put_lanes<OneHead>(state + j * part, now, part);
  }
  for (int r = 0; r < Rows; r++) put_lanes<OneHead>(out_row(t, row + r, p.channels) + p.first, sum[r], part);
}

template <bool OneHead>
inline void scan_piece(const ScanPiece& p) {
  constexpr int kRows = 4;
  for (int64_t row = 0; row < p.t.rows;) {
    int64_t same = 1;  // rows of the sequence from here on
    while (same < kRows && row + same < p.t.rows && state_of(p.t, 5, row + same) == state_of(p.t, 5, row))
      same++;
    if (same == kRows) scan_rows<kRows, OneHead>(p, row), row += kRows;
    else scan_rows<1, OneHead>(p, row), row++;
  }
}
inline void selective_scan(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    const ScanPiece p(t, unit);
    if (p.hd % 16 == 0 && !p.by_place) scan_piece<true>(p);
    else scan_piece<false>(p);
  }
}

// ---- delta_rule: an item is two pieces of the state, each 16 values of a head, [keys][16]: their sums do
// not wait for each other
inline int64_t delta_items(const CpuTask& t) { return (t.in[2]->dim[0] + 31) / 32; }  // of a head
inline CpuWork delta_work(const CpuTask& t) {
  const int64_t heads = t.in[2]->dim[1];
  return {heads * delta_items(t), 8.0 * double(t.in[0]->dim[0] * t.in[2]->dim[0] * heads) * t.rows};
}

// From value `first` of the head on: Pieces whole ones, or one that is not.
template <int Pieces, bool Whole>
inline void delta_pieces(const CpuTask& t, int64_t head, int64_t first) {
  const int64_t s = t.in[0]->dim[0], few = t.in[0]->dim[1], d = t.in[2]->dim[0], heads = t.in[2]->dim[1];
  const bool modulo = gimbal::HeadMap(t.op->param.i[0]) == gimbal::HeadMap::Modulo;
  const int64_t key = modulo ? head % few : head / (heads / few);
  const int part = Whole ? 16 : left(d, first);
  for (int64_t row = 0; row < t.rows; row++) {
    float* const state = state_of(t, 5, row) + (head * d + first) * s;
    const float *q = row_of(t, 0, row, s * few) + key * s, *k = row_of(t, 1, row, s * few) + key * s,
                *v = row_of(t, 2, row, d * heads) + head * d + first;
    float* const y = out_row(t, row, d * heads) + head * d + first;
    const F decay = exp(splat(row_of(t, 4, row, heads)[head])), rate = splat(row_of(t, 3, row, heads)[head]);
    F found[Pieces], change[Pieces], sum[Pieces];
    for (int i = 0; i < Pieces; i++) found[i] = sum[i] = splat(0.f);
    for (int64_t j = 0; j < s; j++)
      for (int i = 0; i < Pieces; i++) {
        float* const at = state + (i * s + j) * part;
        const F now = mul(lanes<Whole>(at, part), decay);
        found[i] = fma(now, splat(k[j]), found[i]);
        put_lanes<Whole>(at, now, part);
      }
    for (int i = 0; i < Pieces; i++) change[i] = mul(sub(lanes<Whole>(v + 16 * i, part), found[i]), rate);
    for (int64_t j = 0; j < s; j++)
      for (int i = 0; i < Pieces; i++) {
        float* const at = state + (i * s + j) * part;
        const F now = fma(splat(k[j]), change[i], lanes<Whole>(at, part));
        put_lanes<Whole>(at, now, part);
        sum[i] = fma(now, splat(q[j]), sum[i]);
      }
    for (int i = 0; i < Pieces; i++) put_lanes<Whole>(y + 16 * i, sum[i], part);
  }
}
inline void delta_rule(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t d = t.in[2]->dim[0], items = delta_items(t);
  for (int64_t item = begin; item < end; item++) {
    const int64_t head = item / items, first = item % items * 32;
    if (first + 32 <= d) {
      delta_pieces<2, true>(t, head, first);
      continue;
    }
    for (int64_t at = first; at < d; at += 16) {
      if (at + 16 <= d) delta_pieces<1, true>(t, head, at);
      else delta_pieces<1, false>(t, head, at);
    }
  }
}
