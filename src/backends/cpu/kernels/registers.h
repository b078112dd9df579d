// One vector register of each instruction set as g++ and clang write vectors, and the words of the kernel
// dialect that their operators lack. Included inside the variant's namespace, behind vec.h, by words.h.
#pragma once

// One register of the instruction set; the 16 lanes are one, two or four of them.
#if defined(__AVX512F__)
#define LANES_REGISTER 64
#elif defined(__AVX2__)
#define LANES_REGISTER 32
#else
#define LANES_REGISTER 16
#endif
#define LANES_INLINE [[gnu::always_inline]] inline
typedef float FloatRegister __attribute__((vector_size(LANES_REGISTER)));
typedef uint32_t WordRegister __attribute__((vector_size(LANES_REGISTER)));
typedef int32_t IntRegister __attribute__((vector_size(LANES_REGISTER)));
constexpr int kLaneRegisters = 64 / LANES_REGISTER;

#if defined(__AVX512F__)
using MaskRegister = __mmask16;
#define COMPARE(name, op, predicate_f, predicate_i)                    \
  LANES_INLINE MaskRegister name(FloatRegister a, FloatRegister b) {   \
    return _mm512_cmp_ps_mask(a, b, predicate_f);                      \
  }                                                                    \
  LANES_INLINE MaskRegister name(WordRegister a, WordRegister b) {     \
    return _mm512_cmp_epu32_mask(__m512i(a), __m512i(b), predicate_i); \
  }                                                                    \
  LANES_INLINE MaskRegister name(IntRegister a, IntRegister b) {       \
    return _mm512_cmp_epi32_mask(__m512i(a), __m512i(b), predicate_i); \
  }
#else
using MaskRegister = IntRegister;
#define COMPARE(name, op, predicate_f, predicate_i)                                                  \
  LANES_INLINE MaskRegister name(FloatRegister a, FloatRegister b) { return (IntRegister)(a op b); } \
  LANES_INLINE MaskRegister name(WordRegister a, WordRegister b) { return (IntRegister)(a op b); }   \
  LANES_INLINE MaskRegister name(IntRegister a, IntRegister b) { return (IntRegister)(a op b); }
#endif
COMPARE(equal, ==, _CMP_EQ_OQ, _MM_CMPINT_EQ)
COMPARE(unequal, !=, _CMP_NEQ_UQ, _MM_CMPINT_NE)
COMPARE(below, <, _CMP_LT_OQ, _MM_CMPINT_LT)
COMPARE(at_most, <=, _CMP_LE_OQ, _MM_CMPINT_LE)
COMPARE(above, >, _CMP_GT_OQ, _MM_CMPINT_NLE)
COMPARE(at_least, >=, _CMP_GE_OQ, _MM_CMPINT_NLT)
#undef COMPARE

LANES_INLINE FloatRegister choose(MaskRegister c, FloatRegister a, FloatRegister b) {
#if defined(__AVX512F__)
  return _mm512_mask_blend_ps(c, b, a);
#elif defined(__AVX2__)
  return _mm256_blendv_ps(b, a, (__m256)c);
#else
  return (FloatRegister)((c & (IntRegister)a) | (~c & (IntRegister)b));
#endif
}
template <class R>  // of integers
LANES_INLINE R choose(MaskRegister c, R a, R b) {
#if defined(__AVX512F__)
  return (R)_mm512_mask_blend_epi32(c, (__m512i)b, (__m512i)a);
#else
  return (R)choose(c, (FloatRegister)a, (FloatRegister)b);
#endif
}
LANES_INLINE bool any_of(MaskRegister c) {
#if defined(__AVX512F__)
  return c != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)c) != 0;
#else
  int32_t all = 0;
  for (int i = 0; i < LANES_REGISTER / 4; i++) all |= c[i];
  return all != 0;
#endif
}
#if !defined(__FMA__) && !defined(__aarch64__)
// fma1 of vec.h for two doubles at a time, without branches.
[[gnu::noinline]] FloatRegister fused(FloatRegister a, FloatRegister b, FloatRegister c) {
  typedef double Doubles __attribute__((vector_size(2 * LANES_REGISTER)));
  typedef int64_t Longs __attribute__((vector_size(2 * LANES_REGISTER)));
  const Doubles p = __builtin_convertvector(a, Doubles) * __builtin_convertvector(b, Doubles);  // exact
  const Doubles d = __builtin_convertvector(c, Doubles), s = p + d, t = s - p, e = (p - (s - t)) + (d - t);
  const Longs inexact = (Longs)(e < 0) | (Longs)(e > 0), even = ((Longs)s & 1) - 1;
  const Longs outward = (Longs)(e > 0) ^ (Longs)(s > 0);  // 0: to the larger magnitude
  const Doubles odd = (Doubles)((Longs)s + (inexact & even & (outward + outward + 1)));
  return __builtin_convertvector(odd, FloatRegister);
}
#else
LANES_INLINE FloatRegister fused(FloatRegister a, FloatRegister b, FloatRegister c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return (FloatRegister)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
}
#endif
LANES_INLINE FloatRegister magnitude(FloatRegister x) {
  return (FloatRegister)((WordRegister)x & 0x7fffffffu);
}
LANES_INLINE FloatRegister nearest_whole(FloatRegister x) {
#if defined(__AVX512F__)
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (FloatRegister)vrndnq_f32((float32x4_t)x);
#else
  // By the float format: from 2^23 on, every number is whole.
  const FloatRegister size = magnitude(x), whole = (size + 8388608.f) - 8388608.f;
  const FloatRegister right = choose(below(size, FloatRegister{} + 8388608.f), whole, size);
  return (FloatRegister)((WordRegister)right | ((WordRegister)x & 0x80000000u));
#endif
}
LANES_INLINE FloatRegister whole_below(FloatRegister x) {
#if defined(__AVX512F__)
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return _mm256_round_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (FloatRegister)vrndmq_f32((float32x4_t)x);
#else
  const FloatRegister near = nearest_whole(x);
  return choose(above(near, x), near - 1.f, near);
#endif
}
LANES_INLINE FloatRegister root_of(FloatRegister x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__aarch64__)
  return (FloatRegister)vsqrtq_f32((float32x4_t)x);
#elif defined(__SSE2__)
  return __builtin_ia32_sqrtps(x);
#else
  for (int i = 0; i < LANES_REGISTER / 4; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
