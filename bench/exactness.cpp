// What exactness costs where the hardware has something faster whose sums differ: bf16 weights times f32
// activations by FMA, as the exact rows compute them, beside AVX512_BF16's dot product of pairs (vdpbf16ps:
// activations rounded to bf16 too, two products added before they join the sum, denormals flushed), which
// gimbal does not use. Both work from the first-level cache, 12 rows at a time, as kernels/float_weights.h.
//   g++ -std=c++20 -O3 -march=native bench/exactness.cpp -o /tmp/exactness && /tmp/exactness
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#ifndef __AVX512BF16__
int main() { std::puts("this CPU has no AVX512_BF16: nothing to compare"); }
#else
namespace {

constexpr int kRows = 12, kColumns = 256, kPasses = 20000;
alignas(64) float x[kRows][kColumns], columns[kColumns][16], total[kRows][16];
alignas(64) unsigned words[kRows][kColumns / 2], pairs[kColumns / 2][16];

void exact() {
  __m512 acc[kRows];
  for (auto& a : acc) a = _mm512_setzero_ps();
  for (int k = 0; k < kColumns; k++) {
    const __m512 c = _mm512_load_ps(columns[k]);
#pragma GCC unroll 12
    for (int m = 0; m < kRows; m++) acc[m] = _mm512_fmadd_ps(c, _mm512_set1_ps(x[m][k]), acc[m]);
  }
  for (int m = 0; m < kRows; m++) _mm512_store_ps(total[m], _mm512_add_ps(_mm512_load_ps(total[m]), acc[m]));
}

void fast() {
  __m512 acc[kRows];
  for (auto& a : acc) a = _mm512_setzero_ps();
  for (int k = 0; k < kColumns / 2; k++) {
    const auto c = __m512bh(_mm512_load_si512(pairs[k]));
#pragma GCC unroll 12
    for (int m = 0; m < kRows; m++)
      acc[m] = _mm512_dpbf16_ps(acc[m], c, __m512bh(_mm512_set1_epi32(int(words[m][k]))));
  }
  for (int m = 0; m < kRows; m++) _mm512_store_ps(total[m], _mm512_add_ps(_mm512_load_ps(total[m]), acc[m]));
}

double gflops(void (*f)()) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kPasses; i++) f();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return 2.0 * kRows * kColumns * 16 * kPasses / taken.count() / 1e9;
}

}  // namespace

int main() {
  std::vector<double> e, f, ratio;
  for (int i = 0; i < 11; i++) {  // in alternation
    e.push_back(gflops(exact)), f.push_back(gflops(fast));
    ratio.push_back(f.back() / e.back());
  }
  for (auto* v : {&e, &f, &ratio}) std::sort(v->begin(), v->end());
  std::printf("exact (FMA) %.0f Gflop/s, vdpbf16ps %.0f Gflop/s, ratio %.2f (%.2f to %.2f); medians of 11\n",
              e[5], f[5], ratio[5], ratio.front(), ratio.back());
}
#endif
