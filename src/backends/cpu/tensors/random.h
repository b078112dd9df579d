// random: Threefry-4x32 with 20 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3",
// 2011). Block b of a seed is the cipher of counter b under the key (seed, 0, 0); its four words are values
// 4b to 4b + 3. uniform: the upper 24 bits / 2^24. normal: Box and Muller's two values of two words.
#pragma once

#include "backends/cpu/kernels/maps.h"
#include "backends/cpu/tensors/view.h"

inline uint32_t rotated(uint32_t v, int n) { return v << n | v >> (32 - n); }
inline void threefry4x32(const uint32_t key[4], const uint32_t counter[4], uint32_t x[4]) {
  constexpr int kRotations[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5},
                                    {6, 20},  {17, 11}, {25, 10}, {18, 20}};
  uint32_t k[5] = {key[0], key[1], key[2], key[3], 0x1BD11BDA};
  for (int i = 0; i < 4; i++) k[4] ^= key[i], x[i] = counter[i] + key[i];
  for (int round = 0; round < 20; round++) {
    const int* r = kRotations[round % 8];
    const int a = round % 2 ? 3 : 1, b = round % 2 ? 1 : 3;
    x[0] += x[a], x[a] = rotated(x[a], r[0]) ^ x[0];
    x[2] += x[b], x[b] = rotated(x[b], r[1]) ^ x[2];
    if (round % 4 != 3) continue;
    const int s = round / 4 + 1;
    for (int i = 0; i < 4; i++) x[i] += k[(s + i) % 5];
    x[3] += uint32_t(s);
  }
}

inline float unit_of(uint32_t word) { return float(word >> 8) * 0x1p-24f; }

inline void random(const CpuTask& t, int64_t begin, int64_t end) {
  const View out = output_view(t);
  const auto* state = reinterpret_cast<const uint32_t*>(t.x[0]);
  const uint32_t key[4] = {state[0], state[1], 0, 0};
  const uint64_t first = state[2] | uint64_t(state[3]) << 32;
  const bool normal = gimbal::Distribution(t.op->param.i[0]) == gimbal::Distribution::Normal;
  alignas(64) float values[kBlock], r[kBlock], turn[kBlock], sines[kBlock], cosines[kBlock];
  for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
    const int64_t words = (n + 3) / 4 * 4;
    for (int64_t i = 0; i < words; i += 4) {
      const uint64_t block = first + uint64_t(e + i) / 4;
      const uint32_t counter[4] = {uint32_t(block), uint32_t(block >> 32), 0, 0};
      uint32_t x[4];
      threefry4x32(key, counter, x);
      for (int64_t j = 0; j < 4; j++)
        values[i + j] = normal && j % 2 == 0 ? float((x[j] >> 8) + 1) * 0x1p-24f : unit_of(x[j]);
    }
    if (normal) {
      const int64_t pairs = words / 2;
      for (int64_t i = 0; i < pairs; i++)
        r[i] = values[2 * i], turn[i] = values[2 * i + 1] * 6.28318530717958647692f;
      map_kernels(int(gimbal::MapFunction::Log))->f32(r, nullptr, nullptr, r, pairs);
      map_kernels(int(gimbal::MapFunction::Sin))->f32(turn, nullptr, nullptr, sines, pairs);
      map_kernels(int(gimbal::MapFunction::Cos))->f32(turn, nullptr, nullptr, cosines, pairs);
      for (int64_t i = 0; i < pairs; i++) {
        const float length = square_root(-2.f * r[i]);
        values[2 * i] = length * cosines[i], values[2 * i + 1] = length * sines[i];
      }
    }
    with_type(out.type, [&]<class T>(T*) { cast_run<float>(values, 1, n, reinterpret_cast<T*>(out.at(e))); });
  });
}
