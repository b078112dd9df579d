// The fastest FMA and dot product of bytes that one instruction set has: compiled like kernels.cpp, over its
// vec.h.
#include "backends/cpu/peak_loops.h"

#include "vec.h"  // from variants/<name>

namespace CPU_VARIANT {
namespace {

// Sums that do not wait for each other, as in peak_fp32.h; a dot product that takes three instructions needs
// some registers for itself.
#if defined(__AVX512F__)
constexpr int kIntSums = 12;
#elif defined(__AVXVNNI__)
constexpr int kIntSums = 5;
#else
constexpr int kIntSums = 3;
#endif

#include "backends/cpu/kernels/peak_fp32.h"

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
