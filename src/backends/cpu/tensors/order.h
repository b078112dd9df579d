// order: each row's values, or their places, in rising or falling order, stable. A radix sort of the values,
// or of keys with their places, from the lowest digit up; short rows by insertion. Rows that are too long for
// the stack sort in scratch memory.
#pragma once

#include "backends/cpu/tensors/moves.h"

// An unsigned key in the order of the values, as wide as they: -0 is 0, NaNs are equal and above infinity.
template <class Key>
constexpr Key kSign = Key(Key(1) << (8 * sizeof(Key) - 1));
template <class Key>
inline Key key_of_bits(Key bits, Key infinity) {
  const Key magnitude = Key(bits & Key(~kSign<Key>));
  if (magnitude > infinity) return Key(~Key(0));
  if (magnitude == 0) return kSign<Key>;
  return bits & kSign<Key> ? Key(~bits) : Key(bits | kSign<Key>);
}
inline uint32_t order_key(float v) {
  return key_of_bits<uint32_t>(__builtin_bit_cast(uint32_t, v), 0x7f800000u);
}
inline uint64_t order_key(double v) {
  return key_of_bits<uint64_t>(__builtin_bit_cast(uint64_t, v), 0x7ff0000000000000u);
}
inline uint16_t order_key(Half v) { return key_of_bits<uint16_t>(v.bits, 0x7c00); }
inline uint16_t order_key(Brain v) { return key_of_bits<uint16_t>(v.bits, 0x7f80); }
inline uint8_t order_key(Truth v) { return v.bits != 0; }
inline uint8_t order_key(uint8_t v) { return v; }
inline uint16_t order_key(int16_t v) { return uint16_t(uint16_t(v) ^ kSign<uint16_t>); }
inline uint32_t order_key(uint32_t v) { return v; }
inline uint32_t order_key(int32_t v) { return uint32_t(v) ^ kSign<uint32_t>; }
inline uint64_t order_key(int64_t v) { return uint64_t(v) ^ kSign<uint64_t>; }

// Calls f with a null pointer of a format that has an order (device/tensor_claims.h).
template <class F>
inline void with_ordered_type(DType t, F f) {
  switch (t) {
    case DType::F32: return f(static_cast<float*>(nullptr));
    case DType::F16: return f(static_cast<Half*>(nullptr));
    case DType::BF16: return f(static_cast<Brain*>(nullptr));
    case DType::F64: return f(static_cast<double*>(nullptr));
    case DType::Bool: return f(static_cast<Truth*>(nullptr));
    case DType::U8: return f(static_cast<uint8_t*>(nullptr));
    case DType::I16: return f(static_cast<int16_t*>(nullptr));
    case DType::U32: return f(static_cast<uint32_t*>(nullptr));
    case DType::I32: return f(static_cast<int32_t*>(nullptr));
    case DType::I64: return f(static_cast<int64_t*>(nullptr));
    default: return;
  }
}

template <class Key>
struct Keyed {
  Key key;
  int32_t place;
};

constexpr int64_t kInsertion = 24;        // values: up to here, insertion is faster than counting digits
constexpr int64_t kNarrowDigits = 4096;   // values: up to here, digits of 8 bits, else of 11
constexpr int64_t kSortedOnStack = 2048;  // values
constexpr int64_t kRowsInScratch = 16;    // rows of a task that are sorted at once, in scratch memory each

// Sorts n elements by key_of(element). at(i): the one at place i; put(i, element) takes the result.
template <class Element, class At, class KeyOf, class Put>
inline void insertion_sort(int64_t n, At at, KeyOf key_of, Put put) {
  Element sorted[kInsertion];
  for (int64_t i = 0; i < n; i++) {
    const Element v = at(i);
    const auto key = key_of(v);
    int64_t to = i;
    for (; to > 0 && key_of(sorted[to - 1]) > key; to--) sorted[to] = sorted[to - 1];
    sorted[to] = v;
  }
  for (int64_t i = 0; i < n; i++) put(i, sorted[i]);
}

// One pass: every element goes behind those of its digit that came before it.
template <class At, class KeyOf, class To>
inline void distribute(int64_t n, int shift, uint32_t mask, uint32_t* starts, At at, KeyOf key_of, To to) {
  for (int64_t i = 0; i < n; i++) {
    const auto v = at(i);
    to(starts[uint32_t(key_of(v) >> shift) & mask]++, v);
  }
}

// `rooms`: two times n elements. The first pass reads the row itself, the last one gives the result.
template <class Element, class At, class KeyOf, class Put>
inline void radix_sort(int64_t n, At at, KeyOf key_of, Element* rooms, Put put) {
  using Key = decltype(key_of(at(0)));
  constexpr int kBits = 8 * int(sizeof(Key)), kMostPasses = (kBits + 7) / 8;
  const int digit = n <= kNarrowDigits || kBits <= 16 ? 8 : 11, passes = (kBits + digit - 1) / digit;
  const int64_t values = int64_t(1) << digit;
  const auto mask = uint32_t(values - 1);
  uint32_t counts[kBits <= 16 ? kMostPasses * 256 : (kBits + 10) / 11 * 2048];
  __builtin_memset(counts, 0, size_t(passes * values) * sizeof *counts);
  for (int64_t i = 0; i < n; i++) {
    const Key key = key_of(at(i));
    for (int p = 0; p < passes; p++) counts[p * values + (uint32_t(key >> (p * digit)) & mask)]++;
  }
  int used[kMostPasses], n_used = 0;  // passes of digits that differ
  for (int p = 0; p < passes; p++) {
    uint32_t* const starts = counts + p * values;
    if (starts[uint32_t(key_of(at(0)) >> (p * digit)) & mask] == uint32_t(n)) continue;
    used[n_used++] = p;
    uint32_t sum = 0;
    for (int64_t i = 0; i < values; i++) {
      const uint32_t here = starts[i];
      starts[i] = sum, sum += here;
    }
  }
  if (n_used == 0)
    for (int64_t i = 0; i < n; i++) put(i, at(i));
  for (int k = 0; k < n_used; k++) {
    const int shift = used[k] * digit;
    uint32_t* const starts = counts + used[k] * values;
    Element *const to = rooms + k % 2 * n, *const from = rooms + (k + 1) % 2 * n;
    auto room = [&](int64_t i) { return from[i]; };
    auto keep = [&](uint32_t i, Element v) { to[i] = v; };
    const bool last = k + 1 == n_used;
    if (k == 0 && last) distribute(n, shift, mask, starts, at, key_of, put);
    else if (k == 0) distribute(n, shift, mask, starts, at, key_of, keep);
    else if (last) distribute(n, shift, mask, starts, room, key_of, put);
    else distribute(n, shift, mask, starts, room, key_of, keep);
  }
}

inline int64_t order_rows(const CpuTask& t) { return count_of(*t.out) / t.out->dim[0]; }
inline bool sorts_in_scratch(const CpuTask& t) { return t.out->dim[0] > kSortedOnStack; }
inline int64_t rooms_at_once(const CpuTask& t) {
  return order_rows(t) < kRowsInScratch ? order_rows(t) : kRowsInScratch;
}
// A work item is a row; of long ones, every kRowsInScratch-th.
inline CpuWork rows_to_order(const CpuTask& t) {
  return {sorts_in_scratch(t) ? rooms_at_once(t) : order_rows(t), 40.0 * double(count_of(*t.out))};
}
// Calls f with a null pointer of the sorted type: the values themselves, or their keys with places.
template <class F>
inline void with_sorted_type(const CpuTask& t, F f) {
  with_ordered_type(DType(t.in[0]->dtype), [&]<class T>(T* type) {
    if (t.op->param.i[1] != 0) f(type, type);
    else f(type, static_cast<Keyed<decltype(order_key(T()))>*>(nullptr));
  });
}
inline int64_t room_bytes(const CpuTask& t) {
  int64_t bytes = 0;
  with_sorted_type(
      t, [&]<class T, class Element>(T*, Element*) { bytes = 2 * t.out->dim[0] * int64_t(sizeof(Element)); });
  return (bytes + 63) / 64 * 64;
}
inline int64_t scratch_of_order(const CpuTask& t) {
  return sorts_in_scratch(t) ? rooms_at_once(t) * room_bytes(t) : 0;
}

inline void order(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value& v = *t.in[0];
  const int64_t n = v.dim[0], stride = v.stride[0];
  const View rows = view_of(v, t.x[0], 1, v.rank - 1);
  const bool falling = t.op->param.i[0] != 0, scratch = sorts_in_scratch(t);
  const int64_t step = scratch ? rooms_at_once(t) : 1, room = room_bytes(t), all = order_rows(t);
  with_sorted_type(t, [&]<class T, class Element>(T*, Element*) {
    using Key = decltype(order_key(T()));
    constexpr bool kPlaces = !__is_same(T, Element);
    const Key flip = falling ? Key(~Key(0)) : Key(0);
    alignas(64) Element own[2 * kSortedOnStack];
    auto sort = [&](int64_t item, auto at, auto key_of, auto put) {
      if (n <= kInsertion) insertion_sort<Element>(n, at, key_of, put);
      else
        radix_sort(n, at, key_of, scratch ? reinterpret_cast<Element*>(t.scratch + item * room) : own, put);
    };
    for (int64_t item = begin; item < end; item++)
      for (int64_t row = item; row < (scratch ? all : item + 1); row += step) {
        const auto* x = reinterpret_cast<const T*>(rows.base) + offset_of(rows, row);
        auto key_at = [&](T value) { return Key(order_key(value) ^ flip); };
        if constexpr (kPlaces) {
          auto* places = reinterpret_cast<int32_t*>(t.y) + row * n;
          sort(
              item,
              [&](int64_t i) {
                return Element{key_at(x[i * stride]), int32_t(i)};
              },
              [](Element e) { return e.key; }, [&](int64_t i, Element e) { places[i] = e.place; });
        } else {
          auto* y = reinterpret_cast<T*>(t.y) + row * n;
          sort(
              item, [&](int64_t i) { return x[i * stride]; }, key_at,
              [&](int64_t i, T value) { y[i] = value; });
        }
      }
  });
}
