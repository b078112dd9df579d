// Steps that several threads share: phases large enough for all of them, with small ones before, between and
// after, which the last thread computes. The bits must be those of one thread, step after step.
// Threads: those that share the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "discovery/registry.h"
#include "program/builder.h"
#include "program/place.h"
#include "support/golden.h"

namespace gimbal {
namespace {

constexpr int kWidth = 512, kHidden = 1100, kLayers = 3, kRows = 9, kOut = 4;

struct Recorded {
  Program program;
  Value x, out_rows, out;
};

// A network without attention: what a step computes depends on its own data alone. `out_rows` rows are asked
// for at the end.
Recorded record(const Device& d, int rows) {
  ProgramBuilder p(d, rows, std::min(rows, kOut));
  Recorded r;
  r.x = p.rows_input("x", DType::F32, kWidth);
  r.out_rows = p.out_rows_input("out_rows");
  Value x = r.x;
  for (int i = 0; i < kLayers; i++) {
    const std::string layer = std::to_string(i);
    Value h = p.rms_norm(x, p.vector("norm" + layer, kWidth), 1e-5f);
    Value gate = p.linear(p.matrix("gate" + layer, Shape(DType::Q8_0, {kWidth, kHidden})), h);
    Value up = p.linear(p.matrix("up" + layer, Shape(DType::F16, {kWidth, kHidden})), h);
    Value y = p.linear(p.matrix("down" + layer, Shape(DType::F32, {kHidden, kWidth})), p.swiglu(gate, up));
    x = p.add(x, y);
  }
  r.out = p.rms_norm(p.select_rows(x, r.out_rows), p.vector("norm", kWidth), 1e-5f);
  p.output(r.out);
  auto program = std::move(p).finish();
  EXPECT_TRUE(program) << program.error().message;
  if (program) r.program = std::move(*program);
  return r;
}

// Blocks of any bits, but with scales and floats that are neither large nor not numbers.
std::vector<unsigned char> weight_bytes(const Shape& s, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(size_t(s.bytes()));
  for (auto& b : bytes) b = (unsigned char)(random());
  for (size_t i = 0; i < bytes.size(); i++) {
    if (s.type == DType::Q8_0 && i % 34 == 1) bytes[i] = 0x14;
    if (s.type == DType::F16 && i % 2 == 1) bytes[i] = (unsigned char)((bytes[i] & 0x80) | 0x28);
    if (s.type == DType::F32 && i % 4 == 3) bytes[i] = (unsigned char)((bytes[i] & 0x80) | 0x3c);
  }
  return bytes;
}

// One device with a program for one row and one for several, over the same buffers, as a session has them.
struct Machine {
  std::unique_ptr<Device> device;
  Recorded recorded[2];
  Buffer buffers[2][kSlots];  // two sets, so that a program is moved from one to another
  Executable executable[2];

  explicit Machine(int threads) {
    auto opened = open_device({"cpu", 0, true, "threads=" + std::to_string(threads)});
    if (!opened) throw std::runtime_error(opened.error().message);
    device = std::move(opened->device);
    uint64_t bytes[kSlots] = {};
    for (int b = 0; b < 2; b++) {
      recorded[b] = record(*device, b ? kRows : 1);
      auto choices = assign_kernels(recorded[b].program, *device, {});
      if (!choices) throw std::runtime_error(choices.error().message);
      auto e = device->compile(recorded[b].program.view());
      if (!e) throw std::runtime_error(e.error().message);
      executable[b] = std::move(*e);
      for (size_t s = 0; s < kSlots; s++) bytes[s] = std::max(bytes[s], recorded[b].program.slot_bytes[s]);
    }
    for (auto& set : buffers) {
      for (size_t s = 0; s < kSlots; s++) set[s] = std::move(*device->allocate(bytes[s] + 64));
      const Program& p = recorded[0].program;
      for (uint16_t w : p.weights) {
        const auto dense = weight_bytes(p.info[w].shape, w);
        Buffer& to = set[size_t(Slot::Weights)];
        const bool packed = p.values[w].layout == GIMBAL_PACKED;
        const auto ok = packed ? device->pack(to, p.values[w], dense.data(), 0, p.values[w].dim[1])
                               : device->write(to, p.values[w].offset, dense.data(), dense.size());
        if (!ok) throw std::runtime_error(ok.error().message);
      }
    }
  }

  std::vector<float> step(int rows, int out_rows, int set, uint32_t seed) {
    const int b = rows > 1;
    const Recorded& r = recorded[b];
    std::mt19937 random(seed);
    std::vector<float> x(size_t(rows) * kWidth);
    for (float& v : x) v = float(int(random() % 2001) - 1000) / 500.f;
    std::vector<int32_t> wanted;
    for (int i = 0; i < out_rows; i++) wanted.push_back(int32_t(random() % unsigned(rows)));
    auto& to = buffers[set];
    auto at = [&](Value v) { return r.program.values[v.id].offset; };
    EXPECT_TRUE(device->write(to[size_t(Slot::Step)], at(r.x), x.data(), x.size() * 4));
    EXPECT_TRUE(device->write(to[size_t(Slot::Step)], at(r.out_rows), wanted.data(), wanted.size() * 4));
    gimbal_buffer* slots[kSlots];
    for (size_t s = 0; s < kSlots; s++) slots[s] = to[s].handle();
    EXPECT_TRUE(device->submit(executable[b], slots, kSlots, {rows, out_rows}));
    EXPECT_TRUE(device->wait());
    std::vector<float> out(size_t(out_rows) * kWidth);
    EXPECT_TRUE(device->read(to[size_t(Slot::Output)], at(r.out), out.data(), out.size() * 4));
    return out;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
}

TEST(CompiledProgram, AnyNumberOfThreadsGivesTheBitsOfOne) {
  Machine alone(1);
  const auto first = alone.step(1, 1, 0, 0);
  for (float v : first) ASSERT_TRUE(std::isfinite(v));
  for (int threads : {2, 3, 4, 5}) {
    if (test::fewer_cases() && threads % 3 != 2) continue;
    Machine together(threads);
    for (uint32_t i = 0; i < 60; i++) {
      const int rows = i % 3 ? 1 : 1 + int(i) % kRows, out = std::min(rows, int(i) % (kOut + 1)),
                set = i % 7 == 0;
      ASSERT_TRUE(same_bits(alone.step(rows, out, 0, i), together.step(rows, out, set, i)))
          << threads << " threads, step " << i << " of " << rows << " rows";
    }
  }
}

// However many threads share an op, it ran once in each step.
TEST(CompiledProgram, CountsEachOpOnceAStep) {
  for (int threads : {1, 2, 3}) {
    Machine m(threads);
    for (uint32_t i = 0; i < 20; i++) {
      m.step(1, 1, 0, i);
      if (i < 7) m.step(kRows, kOut, 0, i);
    }
    for (int b : {0, 1}) {
      const size_t ops = m.recorded[b].program.ops.size();
      const auto counts = m.device->run_counts(m.executable[b], ops);
      ASSERT_TRUE(counts) << counts.error().message;
      EXPECT_EQ(*counts, std::vector<uint64_t>(ops, b ? 7 : 20)) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace gimbal
