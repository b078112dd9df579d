// Operands of any strides, read and written in the order of their dims by the number of the element. A kernel
// takes blocks of kBlock elements: so it needs no strided form of its own.
#pragma once

#include "backends/cpu/tensors/grain.h"
#include "backends/cpu/tensors/number.h"

constexpr int64_t kBlock =
    1024;  // elements that a kernel takes at once: the operands of a block stay in the L1 cache

struct View {
  unsigned char* base;
  DType type;
  int size;  // bytes of an element
  int rank;
  int64_t dim[GIMBAL_MAX_RANK], stride[GIMBAL_MAX_RANK];  // fastest first, neighbours merged that lie as one

  bool dense() const { return rank == 0 || (rank == 1 && stride[0] == 1); }
  unsigned char* at(int64_t element) const { return base + element * size; }  // of a dense view
};

inline int64_t count_of(const gimbal_value& v) {
  int64_t n = 1;
  for (int i = 0; i < v.rank; i++) n *= v.dim[i];
  return n;
}

// Dims [first, first + n) of a value.
inline View view_of(const gimbal_value& v, const unsigned char* memory, int first, int n) {
  View w{const_cast<unsigned char*>(memory), DType(v.dtype), block_of(DType(v.dtype)).bytes, 0, {}, {}};
  for (int i = first; i < first + n; i++) {
    if (v.dim[i] == 1) continue;
    if (w.rank && v.stride[i] == w.stride[w.rank - 1] * w.dim[w.rank - 1]) {
      w.dim[w.rank - 1] *= v.dim[i];
    } else {
      w.dim[w.rank] = v.dim[i], w.stride[w.rank] = v.stride[i];
      w.rank++;
    }
  }
  return w;
}
inline View view_of(const gimbal_value& v, const unsigned char* memory) {
  return view_of(v, memory, 0, v.rank);
}
inline View input_view(const CpuTask& t, int i) { return view_of(*t.in[i], t.x[i]); }
inline View output_view(const CpuTask& t) { return view_of(*t.out, t.y); }

// The offset of an element, in elements.
inline int64_t offset_of(const View& v, int64_t element) {
  int64_t at = 0;
  for (int i = 0; i < v.rank; i++) at += element % v.dim[i] * v.stride[i], element /= v.dim[i];
  return at;
}

// Calls run(memory, stride, elements) for each run of n elements from `element` on that lie at one stride.
template <class Run>
inline void for_runs(const View& v, int64_t element, int64_t n, Run run) {
  if (v.rank <= 1) {
    const int64_t stride = v.rank ? v.stride[0] : 0;
    return run(v.base + element * stride * v.size, stride, n);
  }
  int64_t place[GIMBAL_MAX_RANK], at = 0;
  for (int i = 0; i < v.rank; i++) {
    place[i] = element % v.dim[i], element /= v.dim[i];
    at += place[i] * v.stride[i];
  }
  while (n > 0) {
    const int64_t left = v.dim[0] - place[0], part = n < left ? n : left;
    run(v.base + at * v.size, v.stride[0], part);
    n -= part;
    at -= place[0] * v.stride[0], place[0] = 0;
    for (int i = 1; i < v.rank; i++) {
      at += v.stride[i];
      if (++place[i] < v.dim[i]) break;
      at -= v.dim[i] * v.stride[i], place[i] = 0;
    }
  }
}

// n values, read as C and rounded once.
template <class C, class T, class S>
inline void cast_run(const S* from, int64_t stride, int64_t n, T* to) {
  if (stride == 1)
    for (int64_t i = 0; i < n; i++) to[i] = stored<T>(value_of<C>(from[i]));
  else
    for (int64_t i = 0; i < n; i++) to[i] = stored<T>(value_of<C>(from[i * stride]));
}

template <class T, class C>
inline void read_run(const T* p, int64_t stride, int64_t n, C* out) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; i++) out[i] = value_of<C>(p[i]);
  } else if (stride == 0) {
    const C v = value_of<C>(*p);
    for (int64_t i = 0; i < n; i++) out[i] = v;
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = value_of<C>(p[i * stride]);
  }
}

// n elements as C: where they lie, or copied to `room`.
template <class C>
inline const C* operand(const View& v, int64_t element, int64_t n, C* room) {
  constexpr DType kOwn = __is_same(C, float) ? DType::F32 : __is_same(C, double) ? DType::F64 : DType::I64;
  if (v.dense() && v.type == kOwn) return reinterpret_cast<const C*>(v.at(element));
  C* to = room;
  with_type_of<C>(v.type, [&]<class T>(T*) {
    for_runs(v, element, n, [&](const unsigned char* p, int64_t stride, int64_t part) {
      read_run(reinterpret_cast<const T*>(p), stride, part, to);
      to += part;
    });
  });
  return room;
}

// n results to the dense output.
template <class C>
inline void put(const View& out, int64_t element, int64_t n, const C* values) {
  unsigned char* const p = out.at(element);
  if (out.type == DType::Bool) {
    for (int64_t i = 0; i < n; i++) p[i] = values[i] != C(0);
    return;
  }
  if (reinterpret_cast<const unsigned char*>(values) == p) return;  // computed in place
  with_type_of<C>(out.type, [&]<class T>(T*) {
    for (int64_t i = 0; i < n; i++) reinterpret_cast<T*>(p)[i] = stored<T>(values[i]);
  });
}
// Where a kernel computes n results: in the output itself, or in `room`, for put().
template <class C>
inline C* result(const View& out, int64_t element, C* room) {
  constexpr DType kOwn = __is_same(C, float) ? DType::F32 : __is_same(C, double) ? DType::F64 : DType::I64;
  return out.type == kOwn ? reinterpret_cast<C*>(out.at(element)) : room;
}

template <int PerElement>
inline CpuWork grains_of_output(const CpuTask& t) {
  const int64_t n = count_of(*t.out);
  return {(n + kGrain - 1) / kGrain, double(PerElement) * double(n)};
}
// Calls block(first element, elements) for the blocks of work items [begin, end).
template <class Block>
inline void for_blocks(const CpuTask& t, int64_t begin, int64_t end, Block block) {
  const int64_t n = count_of(*t.out), last = end * kGrain < n ? end * kGrain : n;
  for (int64_t e = begin * kGrain; e < last; e += kBlock) block(e, last - e < kBlock ? last - e : kBlock);
}
