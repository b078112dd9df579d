// Sorting: top_k, sort, argsort (order: ops/op.h). An in-place heap sort in the memory of the output: kernels
// allocate nothing. Only comparisons, so all instruction sets agree.
#pragma once

#include "backends/cpu/kernels/heap.h"

// Keys in the order of the values: -0 counts as 0, and all NaNs as the same value above +infinity.
inline uint32_t sort_key(uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  if (bits == 0x80000000u) bits = 0;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
inline uint32_t bits_at(const uint8_t* x, int64_t i) { return read<uint32_t>(x + 4 * i); }

// Whether value i of x sorts after value j.
struct PlacesAfter {
  const uint8_t* x;
  uint32_t flip;  // all ones: falling
  template <class T>
  bool operator()(T i, T j) const {
    const uint32_t a = sort_key(bits_at(x, int64_t(i))) ^ flip, b = sort_key(bits_at(x, int64_t(j))) ^ flip;
    return a != b ? a > b : i > j;
  }
};

inline uint32_t flip_of(const CpuTask& t) {
  return gimbal::SortOrder(t.op->param.i[0]) == gimbal::SortOrder::Falling ? 0xffffffffu : 0;
}

inline void argsort_rows(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t n = t.in[0]->dim[0];
  for (int64_t row = begin; row < end; row++) {
    auto* places = reinterpret_cast<int32_t*>(t.y) + row * n;
    const PlacesAfter after{t.x[0] + row * n * 4, flip_of(t)};
    for (int64_t i = 0; i < n; i++) places[i] = int32_t(i);
    make_heap(places, n, after);
    sort_heap(places, n, after);
  }
}

// Values that count as equal but are not the same bits, zeros and NaNs, are put in the order in which they
// stand.
inline void sort_rows(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t n = t.in[0]->dim[0];
  const uint32_t flip = flip_of(t), equals[] = {sort_key(0), sort_key(0x7fc00000u)};
  auto after = [flip](uint32_t a, uint32_t b) { return (sort_key(a) ^ flip) > (sort_key(b) ^ flip); };
  for (int64_t row = begin; row < end; row++) {
    const uint8_t* x = t.x[0] + row * n * 4;
    auto* y = reinterpret_cast<uint32_t*>(t.y) + row * n;
    __builtin_memcpy(y, x, size_t(n) * 4);
    make_heap(y, n, after);
    sort_heap(y, n, after);
    for (uint32_t alike : equals) {
      int64_t to = 0;
      while (to < n && sort_key(y[to]) != alike) to++;
      for (int64_t i = 0; i < n && to < n && sort_key(y[to]) == alike; i++)
        if (sort_key(bits_at(x, i)) == alike) y[to++] = bits_at(x, i);
    }
  }
}

// The heap holds the places of the best so far, the last of them at its root, as the floats that they end as.
inline void top_k(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t n = t.in[0]->dim[0], k = t.op->param.i[0], held = n < k ? n : k;
  for (int64_t row = begin; row < end; row++) {
    const uint8_t* x = t.x[0] + row * n * 4;
    float *values = out_row(t, row, 2 * k), *places = values + k;
    const PlacesAfter after{x, 0xffffffffu};
    for (int64_t i = 0; i < held; i++) places[i] = float(i);
    make_heap(places, held, after);
    uint32_t least = sort_key(bits_at(x, int64_t(places[0])));
    for (int64_t i = held; i < n; i++) {
      if (sort_key(bits_at(x, i)) <= least) continue;  // equal ones sort after
      places[0] = float(i);
      sift(places, 0, held, after);
      least = sort_key(bits_at(x, int64_t(places[0])));
    }
    sort_heap(places, held, after);
    for (int64_t i = 0; i < k; i++) {
      uint32_t bits = 0xff800000u;  // -infinity
      if (i < held) bits = bits_at(x, int64_t(places[i]));
      else places[i] = -1.f;
      __builtin_memcpy(values + i, &bits, 4);
    }
  }
}
