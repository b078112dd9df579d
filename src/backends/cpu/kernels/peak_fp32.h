// The fastest FMA of an instruction set, over its vec.h. Like all kernel headers, included inside the
// variant's namespace.
#pragma once

// Sums that do not wait for each other: more than two units with a latency of four or five cycles need, and
// no more than there are registers.
#if defined(__AVX512F__)
constexpr int kFloatSums = 12;
#else
constexpr int kFloatSums = 6;
#endif

// No instruction; but the compiler must think that x is another one now, or it would compute a product once
// for all.
template <class V>
inline void renew(V& x) {
#if defined(__AVX512F__)
  __asm__ volatile("" : "+v"(x.v));
#elif defined(__AVX2__)
  __asm__ volatile("" : "+x"(x.a), "+x"(x.b));
#elif defined(__aarch64__)
  if constexpr (requires { x.d; }) __asm__ volatile("" : "+w"(x.a), "+w"(x.b), "+w"(x.c), "+w"(x.d));
  else __asm__ volatile("" : "+m"(x));
#else
  __asm__ volatile("" : "+m"(x));
#endif
}

float fp32(int64_t rounds) {
  F sums[kFloatSums], x = splat(1.5f), y = splat(0.25f);
  for (F& s : sums) s = x;
  for (; rounds > 0; rounds--) {
#pragma GCC unroll 12  // else, at -O2, the sums would be in memory
    for (int i = 0; i < kFloatSums; i++) renew(x), sums[i] = fma(x, y, sums[i]);
  }
  for (F& s : sums) x = add(x, s);
  return tree_sum(x);
}
