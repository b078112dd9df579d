// reduce: sums, products, extremes, places, truths. The order of additions: kSumChunk values in 16 lanes,
// lane i adds i, i + 16, ... from +0, then a tree: lane i and i + 8, 4, 2, 1; more values than that: the sums
// of the chunks by the same rule.
#pragma once

#include "backends/cpu/tensors/scalar.h"
#include "backends/cpu/tensors/view.h"

constexpr int64_t kChunkOfSums = gimbal::kSumChunk;
static_assert(kChunkOfSums == kBlock);

// How a reduction combines: `first` is where lanes begin, step() takes a value in, join() two lanes.
template <class C>
struct Added {
  static constexpr C first = C(0);
  static C join(C a, C b) {
    if constexpr (is_floating<C>) return a + b;
    else return C(uint64_t(a) + uint64_t(b));
  }
  static F join(F a, F b) { return add(a, b); }
};
template <class C>
struct Multiplied {
  static constexpr C first = C(1);
  static C join(C a, C b) {
    if constexpr (is_floating<C>) return a * b;
    else return C(uint64_t(a) * uint64_t(b));
  }
  static F join(F a, F b) { return mul(a, b); }
};

template <class How, class C>
inline C chunk_of(const C* x, int64_t n) {
  alignas(64) C lane[16];
  for (int i = 0; i < 16; i++) lane[i] = How::first;
  int64_t at = 0;
  if constexpr (__is_same(C, float)) {
    F lanes = splat(How::first);
    for (; at + 16 <= n; at += 16) lanes = How::join(lanes, load(x + at));
    store(lane, lanes);
  } else {
    for (; at + 16 <= n; at += 16)
      for (int i = 0; i < 16; i++) lane[i] = How::join(lane[i], x[at + i]);
  }
  for (int i = 0; at + i < n; i++) lane[i] = How::join(lane[i], x[at + i]);
  for (int step = 8; step; step /= 2)
    for (int i = 0; i < step; i++) lane[i] = How::join(lane[i], lane[i + step]);
  return lane[0];
}
inline float sum_of_squares(const float* x, int64_t n, float middle) {
  F sum = splat(0.f);
  for (int64_t i = 0; i < n; i += 16) {
    const int part = n - i < 16 ? int(n - i) : 16;
    const F d = keep(sub(load_part(x + i, part), splat(middle)), 0, part, 0.f);
    sum = fma(d, d, sum);
  }
  return tree_sum(sum);
}

// The results of chunks, chunks of these, and so on: 2^40 values have four tree.
template <class How, class C>
struct ChunkTree {
  static constexpr int kLevels = 4;
  C values[kLevels][kChunkOfSums];
  int64_t n[kLevels] = {};

  void add(C chunk, int level = 0) {
    values[level][n[level]++] = chunk;
    if (n[level] < kChunkOfSums || level + 1 == kLevels) return;
    const C whole = chunk_of<How>(values[level], n[level]);
    n[level] = 0;
    add(whole, level + 1);
  }
  C total() {  // the rest of a level is its last, shorter chunk
    for (int level = 0;; level++) {
      bool higher = false;
      for (int i = level + 1; i < kLevels; i++) higher = higher || n[i];
      const C sum = chunk_of<How>(values[level], n[level]);
      if (!higher) return sum;
      if (n[level]) values[level + 1][n[level + 1]++] = sum;
    }
  }
};

// Calls each(values, n) for chunks of n values of the row of x that belongs to an output.
template <class C, class Each>
inline void for_chunks(const View& x, int64_t output, int64_t n, Each each) {
  alignas(64) C room[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t part = n - i < kBlock ? n - i : kBlock;
    each(operand(x, output * n + i, part, room), part, i);
  }
}
template <class How, class C>
inline C reduced(const View& x, int64_t output, int64_t n) {
  if (n <= kBlock) {
    C result = How::first;
    for_chunks<C>(x, output, n, [&](const C* v, int64_t part, int64_t) { result = chunk_of<How>(v, part); });
    return result;
  }
  ChunkTree<How, C> tree;
  for_chunks<C>(x, output, n, [&](const C* v, int64_t part, int64_t) { tree.add(chunk_of<How>(v, part)); });
  return tree.total();
}

template <class C>
inline C variance(const View& x, int64_t output, int64_t n) {
  const C middle = reduced<Added<C>, C>(x, output, n) / C(n);
  ChunkTree<Added<C>, C> tree;
  C room[kBlock];
  for_chunks<C>(x, output, n, [&](const C* v, int64_t part, int64_t) {
    if constexpr (__is_same(C, float)) {
      tree.add(sum_of_squares(v, part, middle));
    } else {
      for (int64_t i = 0; i < part; i++) room[i] = (v[i] - middle) * (v[i] - middle);
      tree.add(chunk_of<Added<C>>(room, part));
    }
  });
  return tree.total() / C(n);
}

// Whether a comes before b when the largest is sought: a NaN comes first, -0 is below +0.
template <class C>
inline bool above(C a, C b) {
  if constexpr (is_floating<C>) {
    if (a != a || b != b) return a != a && b == b;
    if (a == b) return __builtin_signbit(b) && !__builtin_signbit(a);
  }
  return a > b;
}
template <class C>
inline bool below(C a, C b) {
  if constexpr (is_floating<C>) {
    if (a != a || b != b) return a != a && b == b;
    if (a == b) return __builtin_signbit(a) && !__builtin_signbit(b);
  }
  return a < b;
}
template <class C>
struct Extreme {
  C value;
  int64_t place;
};
template <bool Largest, class C>
inline Extreme<C> extreme(const View& x, int64_t output, int64_t n) {
  Extreme<C> best{C(0), -1};
  for_chunks<C>(x, output, n, [&](const C* v, int64_t part, int64_t first) {
    for (int64_t i = 0; i < part; i++)
      if (best.place < 0 || (Largest ? above(v[i], best.value) : below(v[i], best.value)))
        best = {v[i], first + i};
  });
  return best;
}
template <bool All, class C>
inline bool truth(const View& x, int64_t output, int64_t n) {
  bool result = All;
  for_chunks<C>(x, output, n, [&](const C* v, int64_t part, int64_t) {
    for (int64_t i = 0; i < part; i++) result = All ? result && v[i] != C(0) : result || v[i] != C(0);
  });
  return result;
}

inline int64_t reduced_count(const CpuTask& t) {
  int64_t n = 1;
  for (int i = 0; i < int(t.op->param.i[1]); i++) n *= t.in[0]->dim[i];
  return n;
}
// Outputs of a work item: as many as take about as long as a grain.
inline int64_t outputs_at_once(int64_t reduced) { return reduced >= kGrain ? 1 : kGrain / reduced; }
inline CpuWork outputs_to_reduce(const CpuTask& t) {
  const int64_t outputs = count_of(*t.out), n = reduced_count(t), once = outputs_at_once(n);
  return {(outputs + once - 1) / once, 2.0 * double(n) * double(outputs)};
}

template <class C>
inline void reduce_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View x = input_view(t, 0), out = output_view(t);
  const int64_t outputs = count_of(*t.out), n = reduced_count(t), once = outputs_at_once(n);
  const int64_t last = end * once < outputs ? end * once : outputs;
  for (int64_t o = begin * once; o < last; o++) {
    auto give = [&](C v) { put(out, o, 1, &v); };
    switch (gimbal::Reduction(t.op->param.i[0])) {
      case gimbal::Reduction::Sum: give(reduced<Added<C>, C>(x, o, n)); break;
      case gimbal::Reduction::Prod: give(reduced<Multiplied<C>, C>(x, o, n)); break;
      case gimbal::Reduction::Mean: give(reduced<Added<C>, C>(x, o, n) / C(n)); break;
      case gimbal::Reduction::Var:
        if constexpr (is_floating<C>) give(variance<C>(x, o, n));
        break;
      case gimbal::Reduction::Min: give(extreme<false, C>(x, o, n).value); break;
      case gimbal::Reduction::Max: give(extreme<true, C>(x, o, n).value); break;
      case gimbal::Reduction::ArgMin:
        reinterpret_cast<int32_t*>(t.y)[o] = int32_t(extreme<false, C>(x, o, n).place);
        break;
      case gimbal::Reduction::ArgMax:
        reinterpret_cast<int32_t*>(t.y)[o] = int32_t(extreme<true, C>(x, o, n).place);
        break;
      case gimbal::Reduction::Any: t.y[o] = truth<false, C>(x, o, n); break;
      case gimbal::Reduction::All: t.y[o] = truth<true, C>(x, o, n); break;
      case gimbal::Reduction::Count: break;
    }
  }
}
