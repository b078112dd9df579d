// The words of the kernel dialect (docs/kernel-dialect.md) over 16 lanes, so that formulas which GPUs compute
// one value at a time (ops/formulas) are CPU kernels, too. Every word is one IEEE operation per lane; they
// have the bits of the emulator's words. Included inside the variant's namespace, behind vec.h.
#pragma once

#include "backends/cpu/kernels/registers.h"

template <class R, int N = kLaneRegisters>
struct Registers {
  Registers<R, N / 2> low, high;
};
template <class R>
struct Registers<R, 1> {
  R r;
};
// `each` of the registers of all operands, which have the same number of them.
template <class R, int N, class Each, class... X>
LANES_INLINE Registers<R, N> of_registers(Each each, const Registers<X, N>&... x) {
  if constexpr (N == 1) return {each(x.r...)};
  else return {of_registers<R, N / 2>(each, x.low...), of_registers<R, N / 2>(each, x.high...)};
}
template <class R, int N>
LANES_INLINE Registers<R, N> all_registers(R r) {
  if constexpr (N == 1) return {r};
  else return {all_registers<R, N / 2>(r), all_registers<R, N / 2>(r)};
}
template <int N>
LANES_INLINE bool any_of(const Registers<MaskRegister, N>& x) {
  if constexpr (N == 1) return any_of(x.r);
  else return any_of(x.low) || any_of(x.high);
}

struct LANES_bool {
  Registers<MaskRegister> v;
};
// A literal counts as all lanes, if it has the very type.
template <class T, class R>
struct LanesOf {
  Registers<R> v;
  LanesOf() = default;
  LANES_INLINE LanesOf(const Registers<R>& from) : v(from) {}
  template <class L>
  requires(__is_same(L, T)) LANES_INLINE LanesOf(L x) : v(all_registers<R, kLaneRegisters>(R{} + x)) {}
};
using LANES_f32 = LanesOf<float, FloatRegister>;
using LANES_u32 = LanesOf<uint32_t, WordRegister>;
using LANES_i32 = LanesOf<int32_t, IntRegister>;

#define BINARY(T, R, op)                                                              \
  LANES_INLINE T operator op(const T& a, const T& b) {                                \
    return of_registers<R>(                                                           \
        [](R x, R y) __attribute__((always_inline)) { return R(x op y); }, a.v, b.v); \
  }
BINARY(LANES_f32, FloatRegister, +)
BINARY(LANES_f32, FloatRegister, -)
BINARY(LANES_f32, FloatRegister, *)
BINARY(LANES_f32, FloatRegister, /)
#define INTEGERS(T, R) \
  BINARY(T, R, +) BINARY(T, R, -) BINARY(T, R, *) BINARY(T, R, &) BINARY(T, R, |) BINARY(T, R, ^)
INTEGERS(LANES_u32, WordRegister)
INTEGERS(LANES_i32, IntRegister)
#undef INTEGERS
#undef BINARY
#define SHIFT(T, R, op)                                                                              \
  LANES_INLINE T operator op(const T& a, const LANES_u32& by) {                                      \
    return of_registers<R>(                                                                          \
        [](R x, WordRegister y) __attribute__((always_inline)) { return R(x op R(y)); }, a.v, by.v); \
  }                                                                                                  \
  LANES_INLINE T operator op(const T& a, uint32_t by) {                                              \
    return of_registers<R>(                                                                          \
        [by](R x) __attribute__((always_inline)) { return R(x op int(by)); }, a.v);                  \
  }
SHIFT(LANES_u32, WordRegister, <<)
SHIFT(LANES_u32, WordRegister, >>)
SHIFT(LANES_i32, IntRegister, >>)
#undef SHIFT
#define COMPARISON(T, R, op, name)                                                      \
  LANES_INLINE LANES_bool operator op(const T& a, const T& b) {                         \
    return {of_registers<MaskRegister>(                                                 \
        [](R x, R y) __attribute__((always_inline)) { return name(x, y); }, a.v, b.v)}; \
  }
// clang-format off
#define COMPARISONS(T, R)                                                              \
  COMPARISON(T, R, ==, equal) COMPARISON(T, R, !=, unequal) COMPARISON(T, R, <, below) \
  COMPARISON(T, R, <=, at_most) COMPARISON(T, R, >, above) COMPARISON(T, R, >=, at_least)
// clang-format on
COMPARISONS(LANES_f32, FloatRegister)
COMPARISONS(LANES_u32, WordRegister)
COMPARISONS(LANES_i32, IntRegister)
#undef COMPARISONS
#undef COMPARISON
LANES_INLINE LANES_bool operator&&(const LANES_bool& a, const LANES_bool& b) {
  return {of_registers<MaskRegister>(
      [](MaskRegister x, MaskRegister y) __attribute__((always_inline)) { return MaskRegister(x & y); }, a.v,
      b.v)};
}
LANES_INLINE LANES_bool operator||(const LANES_bool& a, const LANES_bool& b) {
  return {of_registers<MaskRegister>(
      [](MaskRegister x, MaskRegister y) __attribute__((always_inline)) { return MaskRegister(x | y); }, a.v,
      b.v)};
}
LANES_INLINE LANES_bool operator==(const LANES_bool& a, bool b) {
  return {of_registers<MaskRegister>(
      [b](MaskRegister x) __attribute__((always_inline)) { return b ? x : MaskRegister(~x); }, a.v)};
}

template <class T, class R>
LANES_INLINE LanesOf<T, R> select(const LANES_bool& c, const LanesOf<T, R>& a, const LanesOf<T, R>& b) {
  return of_registers<R>(
      [](MaskRegister m, R x, R y) __attribute__((always_inline)) { return choose(m, x, y); }, c.v, a.v, b.v);
}
LANES_INLINE LANES_f32 select(const LANES_bool& c, const LANES_f32& a, const LANES_f32& b) {
  return select<float, FloatRegister>(c, a, b);
}
LANES_INLINE LANES_u32 select(const LANES_bool& c, const LANES_u32& a, const LANES_u32& b) {
  return select<uint32_t, WordRegister>(c, a, b);
}
LANES_INLINE LANES_i32 select(const LANES_bool& c, const LANES_i32& a, const LANES_i32& b) {
  return select<int32_t, IntRegister>(c, a, b);
}
LANES_INLINE LANES_f32 fused(const LANES_f32& a, const LANES_f32& b, const LANES_f32& c) {
  return of_registers<FloatRegister>(
      [](FloatRegister x, FloatRegister y, FloatRegister z)
          __attribute__((always_inline)) { return fused(x, y, z); },
      a.v, b.v, c.v);
}
#define OF_ONE(name, To, RTo, From, RFrom, expression)                                \
  LANES_INLINE To name(const From& a) {                                               \
    return of_registers<RTo>(                                                         \
        [](RFrom x) __attribute__((always_inline)) { return RTo(expression); }, a.v); \
  }
OF_ONE(lanes_whole, LANES_f32, FloatRegister, LANES_f32, FloatRegister, nearest_whole(x))
OF_ONE(lanes_floor, LANES_f32, FloatRegister, LANES_f32, FloatRegister, whole_below(x))
OF_ONE(lanes_size, LANES_f32, FloatRegister, LANES_f32, FloatRegister, magnitude(x))
OF_ONE(lanes_root, LANES_f32, FloatRegister, LANES_f32, FloatRegister, root_of(x))
OF_ONE(lanes_bits, LANES_u32, WordRegister, LANES_f32, FloatRegister, x)
OF_ONE(lanes_of_bits, LANES_f32, FloatRegister, LANES_u32, WordRegister, x)
OF_ONE(lanes_f32, LANES_f32, FloatRegister, LANES_i32, IntRegister, __builtin_convertvector(x, FloatRegister))
OF_ONE(lanes_i32, LANES_i32, IntRegister, LANES_f32, FloatRegister, __builtin_convertvector(x, IntRegister))
OF_ONE(lanes_i32, LANES_i32, IntRegister, LANES_u32, WordRegister, x)
OF_ONE(lanes_u32, LANES_u32, WordRegister, LANES_i32, IntRegister, x)
#undef OF_ONE
LANES_INLINE LANES_bool lanes_nan(const LANES_f32& a) { return a != a; }

// Register by register: g++ copies a structure of several in pieces.
typedef float UnalignedRegister __attribute__((vector_size(LANES_REGISTER), aligned(4), may_alias));
template <int N>
LANES_INLINE void load_registers(const float* p, Registers<FloatRegister, N>& x) {
  if constexpr (N == 1) x.r = *reinterpret_cast<const UnalignedRegister*>(p);
  else load_registers(p, x.low), load_registers(p + 8 * N / kLaneRegisters, x.high);
}
template <int N>
LANES_INLINE void store_registers(float* p, const Registers<FloatRegister, N>& x) {
  if constexpr (N == 1) *reinterpret_cast<UnalignedRegister*>(p) = x.r;
  else store_registers(p, x.low), store_registers(p + 8 * N / kLaneRegisters, x.high);
}
#if LANES_REGISTER == 16 && !defined(__aarch64__)  // where every FMA is a call anyway, size counts
#define FUNCTION(T, name, ...) [[maybe_unused]] inline LANES_##T name(__VA_ARGS__)
#else
#define FUNCTION(T, name, ...) [[gnu::always_inline, maybe_unused]] inline LANES_##T name(__VA_ARGS__)
#endif
#define ARG(T, n) [[maybe_unused]] const LANES_##T n
#define BEGIN {
#define END }
#define VAR(T, n) [[maybe_unused]] LANES_##T n
#define LET(T, n) [[maybe_unused]] const LANES_##T n
#define F32(x) lanes_f32(x)
#define U32(x) lanes_u32(x)
#define I32(x) lanes_i32(x)
#define BITS_TO_F32(x) lanes_of_bits(x)
#define F32_TO_BITS(x) lanes_bits(x)
#define SELECT(c, a, b) select(c, a, b)
#define FMA(a, b, c) fused(a, b, c)
#define DIVIDE(a, b) ((a) / (b))
#define SQRT(x) lanes_root(x)
#define ABS(x) lanes_size(x)
#define FLOOR(x) lanes_floor(x)
#define ROUND_EVEN(x) lanes_whole(x)
#define ROUNDED(x) (x)
// Of ops/formulas/words.inc.
#define IS_NAN(x) lanes_nan(x)
#define NAN_LIKE(x) LANES_f32(__builtin_nanf(""))
#define INFINITY_LIKE(x) LANES_f32(__builtin_inff())
#define ANY_LANE(c) any_of((c).v)
