// reduce of sums and products where the kept dims are the dense side: rows are taken in one after the other,
// for a strip of columns at once, in the order of reduce.h. A work item is a strip.
#pragma once

#include "backends/cpu/tensors/reduce.h"

constexpr int64_t kStripBytes = 2048;   // of a row: 16 lanes of it stay in the L1 cache
constexpr int64_t kRowsAhead = 4;       // a strip is too short for the processor to see the next rows coming
constexpr int64_t kFewestColumns = 16;  // fewer are no faster than output by output
constexpr int64_t kMostRows = int64_t(1) << 30;

template <class How, class C>
inline void take_in(C* lane, const C* x, int64_t n) {
  int64_t i = 0;
  if constexpr (__is_same(C, float))
    for (; i + 16 <= n; i += 16) store(lane + i, How::join(load(lane + i), load(x + i)));
  for (; i < n; i++) lane[i] = How::join(lane[i], x[i]);
}
template <class How, class C>
inline void clear(C* lane, int64_t n) {
  int64_t i = 0;
  if constexpr (__is_same(C, float))
    for (; i + 16 <= n; i += 16) store(lane + i, splat(How::first));
  for (; i < n; i++) lane[i] = How::first;
}

template <class T>
inline void prefetch(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(x + i);
}

// For each column of a strip what ChunkTree is for one: level 0 takes in rows, the next ones chunks.
template <class How, class C>
struct StripTree {
  static constexpr int kLevels = 3;
  static constexpr int64_t kWidth = kStripBytes / int64_t(sizeof(C));
  // Lanes a multiple of 2 KB apart would meet in a few sets of the L1 cache.
  static constexpr int64_t kApart = kWidth + 64 / int64_t(sizeof(C));
  alignas(64) C lanes[kLevels][16][kApart];
  int64_t n[kLevels] = {};
  const int64_t width;

  explicit StripTree(int64_t columns) : width(columns) {}
  void add(const C* x, int level = 0) {
    join_lane(level, x);
    if (n[level] < kChunkOfSums || level + 1 == kLevels) return;
    const C* const chunk = folded(level);
    n[level] = 0;
    add(chunk, level + 1);
  }
  // A lane has no value before its first row.
  void join_lane(int level, const C* x) {
    C* const lane = lanes[level][n[level] % 16];
    if (n[level]++ < 16) clear<How>(lane, width);
    take_in<How>(lane, x, width);
  }
  const C* folded(int level) {
    for (int64_t i = n[level]; i < 16; i++) clear<How>(lanes[level][i], width);
    for (int step = 8; step; step /= 2)
      for (int i = 0; i < step; i++) take_in<How>(lanes[level][i], lanes[level][i + step], width);
    return lanes[level][0];
  }
  const C* total() {
    for (int level = 0; level + 1 < kLevels; level++) {
      bool higher = false;
      for (int i = level + 1; i < kLevels; i++) higher = higher || n[i];
      if (!higher) return folded(level);
      if (n[level] == 0) continue;
      // add() would fold a level that becomes full: here its rest follows.
      join_lane(level + 1, folded(level));
    }
    return folded(kLevels - 1);
  }
};

// The dims of x that are reduced, and those that are kept.
inline View reduced_view(const CpuTask& t) { return view_of(*t.in[0], t.x[0], 0, int(t.op->param.i[1])); }
inline View kept_view(const CpuTask& t) {
  const int first = int(t.op->param.i[1]);
  return view_of(*t.in[0], t.x[0], first, t.in[0]->rank - first);
}
inline bool by_columns(const CpuTask& t) {
  const auto how = gimbal::Reduction(t.op->param.i[0]);
  if (how != gimbal::Reduction::Sum && how != gimbal::Reduction::Mean && how != gimbal::Reduction::Prod)
    return false;
  const View kept = kept_view(t), reduced = reduced_view(t);
  return kept.rank > 0 && kept.stride[0] == 1 && kept.dim[0] >= kFewestColumns &&
         (reduced.rank == 0 || reduced.stride[0] != 1) && reduced_count(t) <= kMostRows;
}
template <class C>
inline int64_t strips_of_columns(const View& kept) {
  constexpr int64_t kWidth = kStripBytes / int64_t(sizeof(C));
  return (kept.dim[0] + kWidth - 1) / kWidth;
}
template <class C>
inline CpuWork strips_or_outputs(const CpuTask& t) {
  CpuWork work = outputs_to_reduce(t);
  if (!by_columns(t)) return work;
  const View kept = kept_view(t);
  work.items = strips_of_columns<C>(kept) * (count_of(*t.out) / kept.dim[0]);
  return work;
}

template <class How, class C>
inline void reduce_strips(const CpuTask& t, int64_t begin, int64_t end, C divisor) {
  constexpr int64_t kWidth = StripTree<How, C>::kWidth;
  const View kept = kept_view(t), reduced = reduced_view(t), out = output_view(t);
  const int64_t rows = reduced_count(t), strips = strips_of_columns<C>(kept);
  alignas(64) C room[kWidth];
  with_type_of<C>(kept.type, [&]<class T>(T*) {
    for (int64_t item = begin; item < end; item++) {
      const int64_t column = item % strips * kWidth, output = item / strips * kept.dim[0] + column,
                    width = kept.dim[0] - column < kWidth ? kept.dim[0] - column : kWidth;
      const auto* const from = reinterpret_cast<const T*>(kept.base) + offset_of(kept, output);
      StripTree<How, C> tree(width);
      for (int64_t row = 0; row < rows; row++) {
        const T* const x = from + offset_of(reduced, row);
        if (strips > 1 && row + kRowsAhead < rows)
          prefetch(from + offset_of(reduced, row + kRowsAhead), width);
        if constexpr (__is_same(T, C)) {
          tree.add(x);
        } else {
          read_run(x, 1, width, room);
          tree.add(room);
        }
      }
      const C* const sums = tree.total();
      for (int64_t i = 0; i < width; i++) room[i] = divisor == C(1) ? sums[i] : sums[i] / divisor;
      put(out, output, width, room);
    }
  });
}

template <class C>
inline void reduce_any(const CpuTask& t, int64_t begin, int64_t end) {
  if (!by_columns(t)) return reduce_as<C>(t, begin, end);
  const auto how = gimbal::Reduction(t.op->param.i[0]);
  if (how == gimbal::Reduction::Prod) return reduce_strips<Multiplied<C>, C>(t, begin, end, C(1));
  reduce_strips<Added<C>, C>(t, begin, end, how == gimbal::Reduction::Mean ? C(reduced_count(t)) : C(1));
}
