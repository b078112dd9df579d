// The words of kernels/words.h for eight doubles and their bits, for the formulas of ops/formulas/f64. There
// is no FMA here: the plainest CPU has none, and an exact one in doubles would cost it fifty operations.
// Whole numbers below 2^51 are kept as u64 and converted by the float format itself, which every instruction
// set can do. Included behind words.h; backends/cpu/maps_wide.h before, outside of the namespace.
#pragma once

typedef double DoubleRegister __attribute__((vector_size(LANES_REGISTER)));
typedef uint64_t LongRegister __attribute__((vector_size(LANES_REGISTER)));
#if defined(__AVX512F__)
using WideMask = __mmask8;
#define COMPARE(name, op, predicate)                               \
  LANES_INLINE WideMask name(DoubleRegister a, DoubleRegister b) { \
    return _mm512_cmp_pd_mask(a, b, predicate);                    \
  }
LANES_INLINE WideMask equal(LongRegister a, LongRegister b) {
  return _mm512_cmp_epu64_mask(__m512i(a), __m512i(b), _MM_CMPINT_EQ);
}
#else
using WideMask = LongRegister;
#define COMPARE(name, op, predicate) \
  LANES_INLINE WideMask name(DoubleRegister a, DoubleRegister b) { return (LongRegister)(a op b); }
LANES_INLINE WideMask equal(LongRegister a, LongRegister b) { return (LongRegister)(a == b); }
#endif
COMPARE(equal, ==, _CMP_EQ_OQ)
COMPARE(unequal, !=, _CMP_NEQ_UQ)
COMPARE(below, <, _CMP_LT_OQ)
COMPARE(at_most, <=, _CMP_LE_OQ)
COMPARE(above, >, _CMP_GT_OQ)
COMPARE(at_least, >=, _CMP_GE_OQ)
#undef COMPARE
LANES_INLINE DoubleRegister choose_wide(WideMask c, DoubleRegister a, DoubleRegister b) {
#if defined(__AVX512F__)
  return _mm512_mask_blend_pd(c, b, a);
#elif defined(__AVX2__)
  return _mm256_blendv_pd(b, a, (__m256d)c);
#else
  return (DoubleRegister)((c & (LongRegister)a) | (~c & (LongRegister)b));
#endif
}
LANES_INLINE LongRegister choose_wide(WideMask c, LongRegister a, LongRegister b) {
  return (LongRegister)choose_wide(c, (DoubleRegister)a, (DoubleRegister)b);
}
LANES_INLINE DoubleRegister root_of(DoubleRegister x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_pd(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_pd(x);
#elif defined(__aarch64__)
  return (DoubleRegister)vsqrtq_f64((float64x2_t)x);
#else
  for (int i = 0; i < LANES_REGISTER / 8; i++) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

struct LANES_bool64 {
  Registers<WideMask> v;
};
using LANES_f64 = LanesOf<double, DoubleRegister>;
using LANES_u64 = LanesOf<uint64_t, LongRegister>;
#define BINARY(T, R, op)                                                              \
  LANES_INLINE T operator op(const T& a, const T& b) {                                \
    return of_registers<R>(                                                           \
        [](R x, R y) __attribute__((always_inline)) { return R(x op y); }, a.v, b.v); \
  }
BINARY(LANES_f64, DoubleRegister, +)
BINARY(LANES_f64, DoubleRegister, -)
BINARY(LANES_f64, DoubleRegister, *)
BINARY(LANES_f64, DoubleRegister, /)
BINARY(LANES_u64, LongRegister, +)
BINARY(LANES_u64, LongRegister, -)
BINARY(LANES_u64, LongRegister, &)
BINARY(LANES_u64, LongRegister, |)
BINARY(LANES_u64, LongRegister, ^)
#undef BINARY
#define SHIFT(op)                                                                                         \
  LANES_INLINE LANES_u64 operator op(const LANES_u64& a, uint32_t by) {                                   \
    return of_registers<LongRegister>(                                                                    \
        [by](LongRegister x) __attribute__((always_inline)) { return LongRegister(x op int(by)); }, a.v); \
  }
SHIFT(<<)
SHIFT(>>)
#undef SHIFT
#define COMPARISON(T, R, op, name)                                                      \
  LANES_INLINE LANES_bool64 operator op(const T& a, const T& b) {                       \
    return {of_registers<WideMask>(                                                     \
        [](R x, R y) __attribute__((always_inline)) { return name(x, y); }, a.v, b.v)}; \
  }
COMPARISON(LANES_f64, DoubleRegister, ==, equal)
COMPARISON(LANES_f64, DoubleRegister, !=, unequal)
COMPARISON(LANES_f64, DoubleRegister, <, below)
COMPARISON(LANES_f64, DoubleRegister, <=, at_most)
COMPARISON(LANES_f64, DoubleRegister, >, above)
COMPARISON(LANES_f64, DoubleRegister, >=, at_least)
COMPARISON(LANES_u64, LongRegister, ==, equal)
#undef COMPARISON
#define LOGIC(op, one)                                                                                       \
  LANES_INLINE LANES_bool64 operator op(const LANES_bool64& a, const LANES_bool64& b) {                      \
    return {of_registers<WideMask>(                                                                          \
        [](WideMask x, WideMask y) __attribute__((always_inline)) { return WideMask(x one y); }, a.v, b.v)}; \
  }
LOGIC(&&, &)
LOGIC(||, |)
#undef LOGIC
LANES_INLINE LANES_bool64 operator==(const LANES_bool64& a, bool b) {
  return {of_registers<WideMask>(
      [b](WideMask x) __attribute__((always_inline)) { return b ? x : WideMask(~x); }, a.v)};
}
LANES_INLINE LANES_f64 select(const LANES_bool64& c, const LANES_f64& a, const LANES_f64& b) {
  return of_registers<DoubleRegister>(
      [](WideMask m, DoubleRegister x, DoubleRegister y)
          __attribute__((always_inline)) { return choose_wide(m, x, y); },
      c.v, a.v, b.v);
}
LANES_INLINE LANES_u64 select(const LANES_bool64& c, const LANES_u64& a, const LANES_u64& b) {
  return of_registers<LongRegister>(
      [](WideMask m, LongRegister x, LongRegister y)
          __attribute__((always_inline)) { return choose_wide(m, x, y); },
      c.v, a.v, b.v);
}
LANES_INLINE LANES_u64 lanes_bits(const LANES_f64& a) {
  return of_registers<LongRegister>(
      [](DoubleRegister x) __attribute__((always_inline)) { return (LongRegister)x; }, a.v);
}
LANES_INLINE LANES_f64 lanes_of_bits(const LANES_u64& a) {
  return of_registers<DoubleRegister>(
      [](LongRegister x) __attribute__((always_inline)) { return (DoubleRegister)x; }, a.v);
}
LANES_INLINE LANES_f64 lanes_root(const LANES_f64& a) {
  return of_registers<DoubleRegister>(
      [](DoubleRegister x) __attribute__((always_inline)) { return root_of(x); }, a.v);
}
LANES_INLINE LANES_bool64 lanes_nan(const LANES_f64& a) { return a != a; }

typedef double UnalignedDoubles __attribute__((vector_size(LANES_REGISTER), aligned(8), may_alias));
template <int N>
LANES_INLINE void load_registers(const double* p, Registers<DoubleRegister, N>& x) {
  if constexpr (N == 1) x.r = *reinterpret_cast<const UnalignedDoubles*>(p);
  else load_registers(p, x.low), load_registers(p + 4 * N / kLaneRegisters, x.high);
}
template <int N>
LANES_INLINE void store_registers(double* p, const Registers<DoubleRegister, N>& x) {
  if constexpr (N == 1) *reinterpret_cast<UnalignedDoubles*>(p) = x.r;
  else store_registers(p, x.low), store_registers(p + 4 * N / kLaneRegisters, x.high);
}

LANES_INLINE bool any_of(WideMask c) {
#if defined(__AVX512F__)
  return c != 0;
#else
  return any_of((IntRegister)c);
#endif
}
template <int N>
requires(!__is_same(WideMask, MaskRegister)) LANES_INLINE bool any_of(const Registers<WideMask, N>& x) {
  if constexpr (N == 1) return any_of(x.r);
  else return any_of(x.low) || any_of(x.high);
}
// What few lanes need, or no instruction does: one after the other, by functions that are compiled once
// (backends/cpu/maps_wide.h).
inline LANES_f64 of_each_lane(double (*f)(double, double), const LANES_f64& x, const LANES_f64& y) {
  double a[8], b[8];
  store_registers(a, x.v), store_registers(b, y.v);
  for (int i = 0; i < 8; i++) a[i] = f(a[i], b[i]);
  Registers<DoubleRegister> out;
  load_registers(a, out);
  return out;
}
inline void large_angles(const LANES_f64& a, LANES_f64& r, LANES_f64& low, LANES_f64& quarter) {
  double size[8], high[8], rest[8], turns[8];
  store_registers(size, a.v), store_registers(high, r.v), store_registers(rest, low.v),
      store_registers(turns, quarter.v);
  for (int i = 0; i < 8; i++)
    if (size[i] > 0x1p30) turns[i] = ::gimbal::cpu_maps::large_angle(size[i], &high[i], &rest[i]);
  load_registers(high, r.v), load_registers(rest, low.v), load_registers(turns, quarter.v);
}
#define OF_EACH_LANE(f, x, y) of_each_lane(::gimbal::cpu_maps::f, x, y)
#define LARGE_ANGLE(a, is_large, r, low, quarter) large_angles(a, r, low, quarter)

#define U64(x) uint64_t(x)
#define F64_TO_BITS(x) lanes_bits(x)
#define BITS_TO_F64(x) lanes_of_bits(x)
#define NAN64 LANES_f64(__builtin_nan(""))
#define INFINITY64 LANES_f64(__builtin_inf())
