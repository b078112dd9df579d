#include "gpu/probes.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace gimbal::gpu {
namespace {

// y = kernel(x), words of 32 bits: reads `count` of them; `count` is also the kernel's parameter.
Failure run_probe(Runtime& runtime, const KernelCode& code, const void* x, uint64_t x_words, void* y,
                  uint32_t count) {
  Buffer *in = nullptr, *out = nullptr, *step = nullptr;
  Recording* r = nullptr;
  Launch l;
  Failure f = runtime.load(code, &l.kernel);
  if (!f) f = runtime.allocate(x_words * 4, &in);
  if (!f) f = runtime.allocate(uint64_t(count) * 4, &out);
  if (!f) f = runtime.allocate(8, &step);
  if (!f) f = runtime.write(in, 0, x, x_words * 4);
  l.binding[0] = {in, 0, x_words * 4}, l.binding[1] = {out, 0, uint64_t(count) * 4}, l.step = {step, 0, 8};
  memcpy(l.params, &count, sizeof count);
  l.groups[0] = (count + code.lanes - 1) / code.lanes;
  if (!f) f = runtime.record({&l, 1}, &r);
  if (!f) f = runtime.replay(r);
  if (!f) f = runtime.read(out, 0, y, uint64_t(count) * 4);
  runtime.discard(r);
  for (Buffer* b : {in, out, step}) runtime.release(b);
  return f;
}

// The tree of docs/kernel-dialect.md over `n` of the group's values, joined as in the kernel.
uint32_t tree(const uint32_t* values, uint32_t lane, uint32_t n) {
  std::vector<uint32_t> v(values, values + 64), next(64);
  for (uint32_t d = n / 2; d; d /= 2, v = next)
    for (uint32_t i = 0; i < 64; i++) {
      const uint32_t product = (v[i] + v[i ^ d]) * 2654435761u;
      next[i] = product ^ product >> 15;
    }
  return v[lane];
}

}  // namespace

Failure probe_fma(Runtime& runtime, std::span<const KernelCode> probes, bool* fused) {
  constexpr uint32_t n = 64;
  float abc[3 * n], y[n];
  for (uint32_t i = 0; i < n; i++) {
    abc[i] = 1.f + float(2 * i + 1) * 0x1p-23f;
    abc[n + i] = (i % 2 ? -1.f : 1.f) * (1.f + float(3 * i + 7) * 0x1p-22f);
    abc[2 * n + i] = -(abc[i] * abc[n + i]);
  }
  if (Failure f = run_probe(runtime, probes[0], abc, 3 * n, y, n)) return f;
  *fused = true;
  for (uint32_t i = 0; i < n; i++) *fused &= y[i] == std::fma(abc[i], abc[n + i], abc[2 * n + i]);
  return {};
}

Failure probe_lanes(Runtime& runtime, std::span<const KernelCode> probes, bool* right) {
  constexpr uint32_t groups = 8, n = groups * 64;
  uint32_t x[n], y[n];
  for (uint32_t i = 0; i < n; i++) x[i] = i * 2246822519u + 3266489917u;
  if (Failure f = run_probe(runtime, probes[1], x, n, y, n)) return f;
  *right = true;
  for (uint32_t g = 0; g < groups; g++) {
    uint32_t plain[64], added[64], crossed[64];
    for (uint32_t i = 0; i < 64; i++)
      plain[i] = x[g * 64 + i], added[i] = plain[i] + i, crossed[i] = plain[i] ^ i;
    for (uint32_t i = 0; i < 64; i++)
      *right &= y[g * 64 + i] == ((tree(plain, i, 64) + tree(added, i, 16)) ^ tree(crossed, i, 8));
  }
  return {};
}

}  // namespace gimbal::gpu
