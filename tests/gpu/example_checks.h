// The example kernels on any runtime: each check launches them and compares with C++ (expected.h). A test of
// a runtime opens it, and calls all of them with the kernels in its own language.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/expected.h"
#include "gpu/test_device.h"

namespace gimbal::gpu {

// As in the kernels' PARAMS; the generated headers of two kernels.def cannot both be included.
struct RowSumParams {
  uint32_t width, y_at;
};
struct EveryFunctionParams {
  int32_t start;
  uint32_t count;
};
struct ScaledSumParams {
  uint32_t x_at, y_at, count;
  float c;
};

inline void check_every_function(Runtime& runtime, std::span<const KernelCode> kernels) {
  TestDevice device(runtime, kernels);
  const uint32_t n = 100;
  EveryFunction f(n);
  Buffer* y = device.buffer(std::vector<uint32_t>(n * EveryFunction::kWords));
  auto all = [&](Buffer* b, uint64_t words) { return Binding{b, 0, words * 4}; };
  Launch l =
      device.launch("every_function",
                    {all(device.buffer(f.a), n), all(device.buffer(f.b), n), all(device.buffer(f.c), n),
                     all(device.buffer(f.u), n), all(y, n * EveryFunction::kWords)},
                    EveryFunctionParams{-1000, n}, 4);
  Failure failure = device.run({l});
  ASSERT_FALSE(failure) << failure.text;
  auto got = device.contents<uint32_t>(y, n * EveryFunction::kWords);
  for (uint32_t i = 0; i < n; i++) {
    auto want = f.expected(i, -1000, 1000, 500);
    for (uint32_t k = 0; k < EveryFunction::kWords; k++)
      EXPECT_EQ(got[i * EveryFunction::kWords + k], want[k]) << "function " << k << " of lane " << i;
  }
}

// Shared memory and barriers; rows beyond those of the step are left alone.
inline void check_row_sums(Runtime& runtime, std::span<const KernelCode> kernels) {
  TestDevice device(runtime, kernels);
  const uint32_t rows = 9, width = 37;
  std::vector<float> x;
  for (uint32_t i = 0; i < rows * width; i++) x.push_back(float(i % 13) - 4.f);
  Buffer* y = device.buffer(std::vector<float>(rows + 3, -1.f));
  device.set_step(7, 1);
  Launch l = device.launch("row_sum", {{device.buffer(x), 0, x.size() * 4}, {y, 0, (rows + 3) * 4}},
                           RowSumParams{width, 2}, rows);
  Failure failure = device.run({l});
  ASSERT_FALSE(failure) << failure.text;
  auto got = device.contents<float>(y, rows + 3);
  for (uint32_t row = 0; row < rows; row++) {
    double sum = 0;
    for (uint32_t i = 0; i < width; i++) sum += x[row * width + i];
    EXPECT_EQ(got[row + 2], row < 7 ? float(sum) : -1.f) << row;  // small whole numbers: exact in any order
  }
  EXPECT_EQ(got[1], -1.f);
}

// TREE: the same bits whether lanes exchange values in sub-groups of any size or through shared memory.
inline void check_joined(Runtime& runtime, std::span<const KernelCode> kernels) {
  struct Params {
    uint32_t rounds;
  };
  TestDevice device(runtime, kernels);
  const uint32_t rows = 5, rounds = 3, n = rows * 64;
  std::mt19937 random(11);
  std::vector<float> x;
  for (uint32_t i = 0; i < n; i++)
    x.push_back(std::ldexp(float(1 + random() % 100000), int(random() % 20) - 10) * (i % 3 ? 1.f : -1.f));
  Buffer* y = device.buffer(std::vector<uint32_t>(3 * n, 7));
  device.set_step(4, 1);
  Failure failure = device.run(
      {device.launch("joined", {{device.buffer(x), 0, n * 4}, {y, 0, n * 12}}, Params{rounds}, rows)});
  ASSERT_FALSE(failure) << failure.text;
  const auto got = device.contents<uint32_t>(y, 3 * n);
  for (uint32_t row = 0; row < rows; row++) {
    std::vector<float> v(x.begin() + row * 64, x.begin() + row * 64 + 64);
    uint32_t top = 0;
    int32_t counts[8] = {};
    for (uint32_t i = 0; i < 64; i++)
      top = std::max(top, bits_of(v[i])), counts[i / 8] += int32_t(bits_of(v[i]) >> 20) - 1000;
    for (uint32_t k = 0; k < rounds; k++) {
      float sums[4];
      for (uint32_t part = 0; part < 4; part++) {
        const float* p = &v[part * 16];
        sums[part] = (((p[0] + p[8]) + (p[4] + p[12])) + ((p[2] + p[10]) + (p[6] + p[14]))) +
                     (((p[1] + p[9]) + (p[5] + p[13])) + ((p[3] + p[11]) + (p[7] + p[15])));
      }
      for (uint32_t i = 0; i < 64; i++) {
        const volatile float share = sums[i / 16] * 0.37f;
        v[i] = v[i] + share;
      }
    }
    for (uint32_t i = 0; i < 64; i++) {
      const uint32_t at = (row * 64 + i) * 3;
      EXPECT_EQ(got[at], row < 4 ? bits_of(v[i]) : 7) << row << " " << i;
      EXPECT_EQ(got[at + 1], row < 4 ? top : 7) << row << " " << i;
      EXPECT_EQ(got[at + 2], row < 4 ? uint32_t(counts[i / 8]) : 7) << row << " " << i;
    }
  }
}

// Two kernels made of one text, with bindings that do not begin where their buffer does.
inline void check_variants_at_offsets(Runtime& runtime, std::span<const KernelCode> kernels) {
  TestDevice device(runtime, kernels);
  const uint32_t n = 130;
  std::vector<float> x(64 + 3 + n), y(64 + n);
  std::vector<uint32_t> halves(1 + n / 2);
  for (uint32_t i = 0; i < n; i++) {
    x[64 + 3 + i] = 0.25f * float(i);
    halves[1 + i / 2] |= uint32_t(float_to_half(0.25f * float(i))) << (i % 2 * 16);
  }
  Buffer *out = device.buffer(y), *out2 = device.buffer(std::vector<float>(n));
  Failure failure = device.run({
      device.launch("scaled_sum", {{device.buffer(x), 256, (3 + n) * 4}, {out, 256, n * 4}},
                    ScaledSumParams{3, 0, n, 7.f}, 3),
      device.launch("scaled_sum_half", {{device.buffer(halves), 0, halves.size() * 4}, {out2, 0, n * 4}},
                    ScaledSumParams{1, 0, n, -1.f}, 3),
  });
  ASSERT_FALSE(failure) << failure.text;
  auto got = device.contents<float>(out, 64 + n), got2 = device.contents<float>(out2, n);
  for (uint32_t i = 0; i < n; i++) {
    EXPECT_EQ(got[64 + i], 0.5f * float(i) + 7.f) << i;
    EXPECT_EQ(got2[i], 0.25f * float(i) - 1.f) << i;
  }
}

// One recording, replayed three times without a word from the host between: every launch reads what the one
// before it wrote, some of it within one buffer, and sees the step data written last.
inline void check_replays_in_order(Runtime& runtime, std::span<const KernelCode> kernels) {
  TestDevice device(runtime, kernels);
  const uint32_t n = 64, links = 20, replays = 3;
  std::vector<float> x(2 * n, 0.f);
  for (uint32_t i = 0; i < n; i++) x[i] = float(i);
  Buffer* b = device.buffer(x);
  std::vector<Launch> chain;
  for (uint32_t k = 0; k < links; k++) {  // y = 2 x + c, from one half of the buffer to the other and back
    const uint64_t from = k % 2 * n * 4, to = n * 4 - from;
    chain.push_back(device.launch("scaled_sum", {{b, from, n * 4}, {b, to, n * 4}},
                                  ScaledSumParams{0, 0, n, k % 2 ? -1.f : 1.f}, 1));
    // Back to the size it had, so that the floats stay exact: the second kernel reads halves, hence not here.
  }
  Buffer* sums = device.buffer(std::vector<float>(2, 0.f));
  chain.push_back(device.launch("row_sum", {{b, 0, 2 * n * 4}, {sums, 0, 8}}, RowSumParams{n, 0}, 2));
  device.set_step(1, 1);
  Recording* r = nullptr;
  Failure f = runtime.record(chain, &r);
  ASSERT_FALSE(f) << f.text;
  for (uint32_t k = 0; k < replays; k++) {
    f = runtime.replay(r);
    ASSERT_FALSE(f) << f.text;
  }
  auto got = device.contents<float>(b, 2 * n), sum = device.contents<float>(sums, 2);
  std::vector<float> want(x.begin(), x.begin() + n);
  for (uint32_t k = 0; k < links * replays; k++)
    for (float& v : want) v = 2.f * v + (k % 2 ? -1.f : 1.f);
  for (uint32_t i = 0; i < n; i++) EXPECT_EQ(got[i], want[i]) << i;
  EXPECT_NE(sum[0], 0.f);
  EXPECT_EQ(sum[1], 0.f);  // a row that the step did not have
  device.set_step(2, 1);
  f = runtime.replay(r);
  ASSERT_FALSE(f) << f.text;
  f = runtime.wait();
  ASSERT_FALSE(f) << f.text;
  EXPECT_NE(device.contents<float>(sums, 2)[1], 0.f);
  runtime.discard(r);
}

// Fresh memory is zero, also where somebody else's was; ranges are read and written where they were said to
// be.
inline void check_memory(Runtime& runtime) {
  for (int round = 0; round < 2; round++) {
    Buffer* b = nullptr;
    Failure f = runtime.allocate(100000, &b);
    ASSERT_FALSE(f) << f.text;
    std::vector<uint8_t> bytes(100000, 1);
    ASSERT_FALSE(runtime.read(b, 0, bytes.data(), bytes.size()));
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 100000);
    std::fill(bytes.begin(), bytes.end(), 255);
    ASSERT_FALSE(runtime.write(b, 300, bytes.data(), 77));
    ASSERT_FALSE(runtime.read(b, 200, bytes.data(), 300));
    for (int i = 0; i < 300; i++) EXPECT_EQ(bytes[size_t(i)], i >= 100 && i < 177 ? 255 : 0) << i;
    EXPECT_EQ(runtime.write(b, 99999, bytes.data(), 2).code, Failure::Invalid);
    EXPECT_EQ(runtime.read(b, UINT64_MAX, bytes.data(), 2).code, Failure::Invalid);
    ASSERT_FALSE(runtime.write(b, 0, bytes.data(), 100));
    runtime.release(b);
  }
  Buffer* none = nullptr;
  Failure f = runtime.allocate(uint64_t(1) << 60, &none);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_NE(f.text.find("1152921504606846976"), std::string::npos) << f.text;
  runtime.release(nullptr);
}

// An op of one text that the engine does not have (toy/kernels.def): it runs here, too.
inline void check_toy(Runtime& runtime, std::span<const KernelCode> kernels) {
  struct Params {
    uint32_t width;
  };
  TestDevice device(runtime, kernels);
  const uint32_t rows = 5, width = 150;
  std::vector<float> x;
  for (uint32_t i = 0; i < rows * width; i++) x.push_back(float((i * 37) % 101) - 60.f);
  Buffer* y = device.buffer(std::vector<float>(rows * width, -1.f));
  device.set_step(4, 1);
  Failure failure = device.run({device.launch(
      "below_largest", {{device.buffer(x), 0, x.size() * 4}, {y, 0, x.size() * 4}}, Params{width}, rows)});
  ASSERT_FALSE(failure) << failure.text;
  const auto got = device.contents<float>(y, rows * width);
  for (uint32_t i = 0; i < rows * width; i++) {
    const auto row = x.begin() + i / width * width;
    EXPECT_EQ(got[i], i / width < 4 ? *std::max_element(row, row + width) - x[i] : -1.f) << i;
  }
}

// FMA, DIVIDE and SQRT are rounded once, on every target: all bits, for inputs of every size that the dialect
// promises. `kernels`: those of rounding/kernels.def, or corrections/kernels.def.
inline void check_rounding(Runtime& runtime, std::span<const KernelCode> kernels) {
  struct Params {
    uint32_t count;
  };
  const uint32_t n = 400000, products = 300000;  // the rest: quotients and roots of any size
  std::mt19937 random(5);
  std::vector<float> a, b, c;
  auto value = [&](int exponents) {
    return std::ldexp(float(1 << 23 | (random() >> 9)),
                      int(random() % uint32_t(2 * exponents)) - exponents - 23) *
           (random() & 1 ? 1.f : -1.f);
  };
  for (uint32_t i = 0; i < n; i++) {
    const int exponents = i < products ? 45 : 125;
    a.push_back(i % 7 == 6 ? float(int(i % 100)) : value(exponents));
    b.push_back(i % 11 == 10 ? float(1 + int(i % 50)) : value(exponents));
    // A sum that rounds in all places: far away, near, and cancelling but for the product's own rounding.
    float product = a[i] * b[i];
    float at_half = product * std::ldexp(1.f, int(random() % 60) - 30);
    c.push_back(i % 4 == 0   ? value(60)
                : i % 4 == 1 ? -product
                : i % 4 == 2 ? at_half
                             : -std::nextafter(product, 0.f));
  }
  TestDevice device(runtime, kernels);
  Buffer* y = device.buffer(std::vector<float>(n * 3));
  Failure failure = device.run({device.launch(kernels[0].name,
                                              {{device.buffer(a), 0, n * 4},
                                               {device.buffer(b), 0, n * 4},
                                               {device.buffer(c), 0, n * 4},
                                               {y, 0, n * 12}},
                                              Params{n}, (n + 63) / 64)});
  ASSERT_FALSE(failure) << failure.text;
  auto got = device.contents<float>(y, n * 3);
  int fused = 0, quotients = 0, roots = 0;
  for (uint32_t i = 0; i < n; i++) {
    float want = std::fma(a[i], b[i], c[i]);
    fused += i < products && bits_of(got[i * 3]) != bits_of(want) && want != 0;
    const float quotient = a[i] / b[i];  // a target may flush subnormal results
    quotients += got[i * 3 + 1] != quotient && std::fpclassify(quotient) != FP_SUBNORMAL;
    if (a[i] >= 0) roots += got[i * 3 + 2] != std::sqrt(a[i]);
  }
  EXPECT_EQ(fused, 0);
  EXPECT_EQ(quotients, 0);
  EXPECT_EQ(roots, 0);
}

// What cannot be launched is refused when it is recorded, with the kernel's name and what is wrong.
inline void check_refusals(Runtime& runtime, std::span<const KernelCode> kernels) {
  TestDevice device(runtime, kernels);
  Buffer* b = device.buffer(std::vector<float>(1024));
  const Launch good = device.launch("row_sum", {{b, 0, 512}, {b, 1024, 512}}, RowSumParams{16, 0}, 1);
  auto refused = [&](auto change, const char* word) {
    Launch l = good;
    change(l);
    Recording* r = nullptr;
    const Failure f = runtime.record({&l, 1}, &r);
    EXPECT_EQ(f.code, Failure::Invalid) << word;
    EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
    if (l.kernel) { EXPECT_NE(f.text.find("row_sum"), std::string::npos) << f.text; }
    runtime.discard(r);
  };
  refused([](Launch& l) { l.kernel = nullptr; }, "kernel");
  refused([](Launch& l) { l.binding[1].buffer = nullptr; }, "binding 1 is not bound");
  refused([](Launch& l) { l.step.buffer = nullptr; }, "step data is not bound");
  refused([](Launch& l) { l.step.bytes = 4; }, "step data");
  refused([](Launch& l) { l.binding[0].offset = 2; }, "multiple");
  refused([](Launch& l) { l.binding[0].bytes = 5; }, "multiple");
  refused([](Launch& l) { l.binding[1].bytes = 4096; }, "of a buffer of 4096");
  refused([](Launch& l) { l.groups[1] = 0; }, "groups");
  const Failure f = device.run({good});
  EXPECT_FALSE(f) << f.text;
}

inline void check_examples(Runtime& runtime, std::span<const KernelCode> kernels) {
  check_memory(runtime);
  check_every_function(runtime, kernels);
  check_row_sums(runtime, kernels);
  check_joined(runtime, kernels);
  check_variants_at_offsets(runtime, kernels);
  check_replays_in_order(runtime, kernels);
  check_refusals(runtime, kernels);
}

}  // namespace gimbal::gpu
