// map: a function of one or two numbers at the same place (ops/maps.def), over blocks that are dense and in
// the format of the arithmetic. An operand may be a number in the parameters.
#pragma once

#include "backends/cpu/kernels/maps.h"
#include "backends/cpu/tensors/view.h"

template <class C>
inline void call_map(const MapKernels& k, const C* a, const C* b, const double* f, C* y, int64_t n,
                     int bits) {
  if constexpr (__is_same(C, float)) k.f32(a, b, f, y, n);
  else if constexpr (__is_same(C, double)) k.f64(a, b, f, y, n);
  else k.integer(a, b, f, y, n, bits);
}

// The width of an integer format as MapInt takes it.
inline int integer_bits(DType t) {
  const int bits = block_of(t).bytes * 8;
  return t == DType::Bool ? -1 : t == DType::U8 || t == DType::U32 ? -bits : bits;
}

// A block of one number: by registers, because a part of 2,048 values takes hardly longer than 1,024 stores.
template <class C>
inline void fill_block(C* to, C v) {
  constexpr int kLine = 64 / sizeof(C);
  int64_t i = 0;
  for (; i < kLine; i++) to[i] = v;
  if constexpr (is_floating<C>) {
    const auto line = load_block(to);
    for (; i < kBlock; i += kLine) store_registers(to + i, line.v);
  } else {
    for (; i < kBlock; i++) to[i] = v;
  }
}

template <class C>
inline void map_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View first = input_view(t, 0), second = input_view(t, t.op->inputs > 1), out = output_view(t);
  const auto& p = t.op->param;
  const MapKernels& kernels = *map_kernels(int(p.i[0]));
  const auto operands = gimbal::Operands(p.i[1]);
  const int bits = integer_bits(first.type);
  alignas(64) C a[kBlock], b[kBlock], y[kBlock], number[kBlock];
  if (operands != gimbal::Operands::Values) {
    // As the operand's format has it: halves are rounded first.
    C v = is_floating<C> ? C(p.f[0]) : C(p.i[2]);
    with_type_of<C>(first.type, [&]<class T>(T*) { v = value_of<C>(stored<T>(v)); });
    fill_block(number, v);
  }
  for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
    const C* x = operand(first, e, n, a);
    const C *left = x, *right = x;
    if (operands == gimbal::Operands::NumberSecond) right = number;
    else if (operands == gimbal::Operands::NumberFirst) left = number;
    else if (t.op->inputs > 1) right = operand(second, e, n, b);
    C* to = result(out, e, y);
    call_map<C>(kernels, left, right, p.f, to, n, bits);
    put(out, e, n, to);
  });
}
