// order: the places of each row's values in rising or falling order, stable: a heap sort within the output,
// because kernels allocate nothing.
#pragma once

#include "backends/cpu/kernels/heap.h"
#include "backends/cpu/tensors/moves.h"

// An unsigned key in the order of the values: -0 is 0, NaNs are equal and above infinity.
template <class T>
inline uint64_t order_key(T v) {
  if constexpr (is_floating<typename Exact<T>::Type>) {
    const double d = value_of<double>(v);
    if (d != d) return ~uint64_t(0);
    const uint64_t bits = __builtin_bit_cast(uint64_t, d + 0.0);
    return bits >> 63 ? ~bits : bits | uint64_t(1) << 63;
  } else if constexpr (__is_same(T, uint64_t)) {
    return v;
  } else {
    return uint64_t(value_of<int64_t>(v)) ^ uint64_t(1) << 63;
  }
}

inline CpuWork rows_to_order(const CpuTask& t) {
  const int64_t n = count_of(*t.out);
  return {n / t.out->dim[0], 40.0 * double(n)};
}

inline void order(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value& v = *t.in[0];
  const int64_t n = v.dim[0], stride = v.stride[0];
  const View rows = view_of(v, t.x[0], 1, v.rank - 1);
  const uint64_t flip = t.op->param.i[0] ? ~uint64_t(0) : 0;
  with_type(rows.type, [&]<class T>(T*) {
    for (int64_t row = begin; row < end; row++) {
      const auto* x = reinterpret_cast<const T*>(rows.base) + offset_of(rows, row);
      auto* places = reinterpret_cast<int32_t*>(t.y) + row * n;
      auto after = [&](int32_t i, int32_t j) {
        const uint64_t a = order_key(x[i * stride]) ^ flip, b = order_key(x[j * stride]) ^ flip;
        return a != b ? a > b : i > j;
      };
      for (int64_t i = 0; i < n; i++) places[i] = int32_t(i);
      make_heap(places, n, after);
      sort_heap(places, n, after);
    }
  });
}
