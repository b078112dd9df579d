// The maps on any runtime: the bits of the CPU, for edges and floats of all sizes. A test of a runtime calls
// check_maps() with the kernels of gpu/tensors in its own language.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "gpu/test_device.h"
#include "ops/map_variants.h"

namespace gimbal::gpu {

// As in map.k; the generated headers of two kernels.def cannot both be included.
struct MapParams {
  uint32_t a_at, b_at, y_at, count, function;
  float first, second;
};

inline std::vector<float> map_arguments(uint32_t seed, uint32_t count) {
  std::vector<float> x = {0,        1,   2,          0.5f,       1.5f,   2.5f,  3,     7,         0.3f,
                          88.8f,    104, 32768,      8388609,    1e-10f, 1e10f, 1e30f, 3e38f,     1e-38f,
                          INFINITY, NAN, 0.7071067f, 0.7071068f, 1e-30f, 20.5f, 0.66f, 3.1415927f};
  for (size_t i = 0, n = x.size(); i < n; i++) x.push_back(-x[i]);
  std::mt19937 random(seed);
  while (x.size() < count) {
    const uint32_t r = uint32_t(random());
    const float any = std::bit_cast<float>(uint32_t(random()));
    x.push_back(r % 2 ? any : float(int32_t(random())) * (r % 4 == 0 ? 1e-9f : 1e-8f));
  }
  std::shuffle(x.begin(), x.end(), random);
  return x;
}

// `subnormals`: whether the device keeps them, in results and arguments.
inline void check_maps(Runtime& runtime, std::span<const KernelCode> kernels, bool subnormals = true) {
  TestDevice device(runtime, kernels);
  const uint32_t n = 8000, at = 3;
  std::vector<float> a = map_arguments(1, n), b = map_arguments(2, n);
  for (uint32_t i = 0; i < n; i += 5) b[i] = float(int(i / 5 % 41) - 20) / 2;  // whole and half exponents
  if (!subnormals)
    for (std::vector<float>* v : {&a, &b})
      for (float& x : *v)
        if (std::fpclassify(x) == FP_SUBNORMAL) x = 0;
  const float numbers[2] = {0.7f, -1.25f};
  const double wide[2] = {numbers[0], numbers[1]};
  std::vector<float> shifted(at, 0);
  shifted.insert(shifted.end(), a.begin(), a.end());
  const Binding x{device.buffer(shifted), 0, (n + at) * 4}, y{device.buffer(b), 0, n * 4};
  Buffer* out = device.buffer(std::vector<float>(n + 2 * at, 9));
  for (const MapFacts& f : kMaps) {
    if (!(f.classes & kMapF)) continue;
    const Launch l =
        device.launch("map_" + std::to_string(map_group(f.function)), {x, y, {out, 0, (n + 2 * at) * 4}},
                      MapParams{at, 0, at, n, uint32_t(f.function), numbers[0], numbers[1]}, (n + 63) / 64);
    const Failure failure = device.run({l});
    ASSERT_FALSE(failure) << f.name << ": " << failure.text;
    const std::vector<float> got = device.contents<float>(out, n + 2 * at);
    std::vector<float> want(n);
    const MapKernels* cpu = test::map_variants().back().kernels(int(f.function));
    for (uint32_t i = 0; i < n; i += 1000) cpu->f32(&a[i], &b[i], wide, &want[i], 1000);
    int wrong = 0;
    for (uint32_t i = 0; i < n; i++) {
      if (!subnormals && std::abs(want[i]) < 1.2e-38f) continue;
      if (std::bit_cast<uint32_t>(got[at + i]) == std::bit_cast<uint32_t>(want[i])) continue;
      if (wrong++ < 3)
        ADD_FAILURE() << f.name << " of " << a[i] << " and " << b[i] << " is " << got[at + i]
                      << ", on the CPU " << want[i];
    }
    EXPECT_EQ(wrong, 0) << f.name;
    EXPECT_EQ(got[at - 1], 9) << f.name;
    EXPECT_EQ(got[at + n], 9) << f.name;
  }
}

}  // namespace gimbal::gpu
