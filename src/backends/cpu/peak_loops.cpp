// The fastest FMA and dot product of bytes that one instruction set has: compiled like kernels.cpp, over its
// vec.h.
#include "backends/cpu/peak_loops.h"

#include "vec.h"  // from variants/<name>

namespace CPU_VARIANT {
namespace {

// Sums that do not wait for each other: more than two units with a latency of four or five cycles need, and
// no more than there are registers. A dot product that takes three instructions needs some for itself.
#if defined(__AVX512F__)
constexpr int kFloatSums = 12, kIntSums = 12;
#else
constexpr int kFloatSums = 6, kIntSums = 3;
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
  for (; rounds > 0; rounds--)
    for (int i = 0; i < kFloatSums; i++) renew(x), sums[i] = fma(x, y, sums[i]);
  for (F& s : sums) x = add(x, s);
  return tree_sum(x);
}

int32_t int8(int64_t rounds) {
  uint8_t bytes[64];
  for (int i = 0; i < 64; i++) bytes[i] = uint8_t(i / 2);
  // Times 1 and -1 in turn: busy operands, and sums that never overflow.
  I sums[kIntSums], a = splat(int32_t(0xff01ff01));
  const Codes codes = load_codes(bytes);
  for (I& s : sums) s = splat(int32_t(0));
  for (; rounds > 0; rounds--)
    for (int i = 0; i < kIntSums; i++) renew(a), sums[i] = dot(sums[i], codes, a);
  I all = splat(int32_t(0));
  for (I& s : sums) all = add(all, s);
  return sum(all);
}

}  // namespace

extern const CpuPeakLoops peak_loops;
const CpuPeakLoops peak_loops = {kRank, kFloatSums * 16 * 2, kIntSums * 64 * 2, fp32, int8};

}  // namespace CPU_VARIANT
