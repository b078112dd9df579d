// What limits generation: the kernel or the memory. GB/s of a product with one row whose weights lie in the
// second-level cache, and in memory; and of reading the same memory without a product. All in one process, in
// turn, since memory may be faster in the next one (docs/internals/measurements.md). Medians of nine rounds.
//   g++ -std=c++20 -O3 -DNDEBUG -w -pthread -DCPU_VARIANT=avx2 -Isrc -Isrc/backends/cpu/variants/avx2
//     -fno-math-errno -fno-exceptions -ffp-contract=off -fno-tree-vectorize -fno-tree-slp-vectorize
//     -fno-tree-loop-distribute-patterns -mavx2 -mfma -mf16c bench/one_row.cpp -o /tmp/one_row
//   /tmp/one_row [threads]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/activations.h"
#include "tensor/block_encode.h"
#include "tensor/half.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::Format, gimbal::Levels, gimbal::Number, gimbal::Scales, gimbal::format_of;
using gimbal::OpKind, gimbal::kChunk, gimbal::kPagePositions;
#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/matmul.h"

constexpr int kColumns = 2048, kRounds = 9;
constexpr int64_t kMemory = 512 << 20, kCache = 160 << 10;

int threads = 2;
alignas(64) uint8_t x[2 * kColumns];
std::vector<uint8_t> memory(kMemory + 16384);
uint8_t* first() {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
}

// GB/s of `work(thread)` on all threads at once, which reads `bytes` in all.
template <class Work>
double speed(int64_t bytes, const Work& work) {
  std::vector<std::thread> running;
  const auto begin = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; t++) running.emplace_back(work, t);
  for (std::thread& t : running) t.join();
  return double(bytes) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
         1e9;
}

template <class W, template <class> class One, class Rows>
void multiply(const uint8_t* weights, int64_t bytes, int times) {
  const int64_t tiles = bytes / kLayout<W::type>.tile_bytes(kColumns);
  std::vector<float> y(size_t(tiles) * 16);
  gimbal_op op{};
  op.inputs = 2;
  gimbal_value out{}, w{}, activations{};
  w.dim[0] = kColumns, w.dim[1] = tiles * 16;
  CpuTask t{};
  t.op = &op, t.out = &out, t.in[0] = &w, t.in[1] = &activations;
  t.y = reinterpret_cast<unsigned char*>(y.data());
  t.x[0] = weights, t.x[1] = x;
  t.rows = 1;
  for (int i = 0; i < times; i++) matmul<One, W, Rows>(t, 0, tiles);
}

int64_t sink;
void read_all(const uint8_t* p, int64_t bytes) {
  I sums[4];
  for (I& s : sums) s = splat(int32_t(0));
  for (int64_t at = 0; at < bytes; at += 256) {
    fetch_ahead<256>(p + at);
    for (int i = 0; i < 4; i++)
      sums[i] = add(sums[i], load(reinterpret_cast<const int32_t*>(p + at + 64 * i)));
  }
  sink += sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class W, template <class> class One, class Rows>
void measure(const char* name) {
  const int64_t part = kMemory / threads / 4096 * 4096, of_cache = kCache * 1000;
  std::vector<double> cache, with, alone, share;
  for (int round = 0; round < kRounds; round++) {
    cache.push_back(
        speed(threads * of_cache, [&](int t) { multiply<W, One, Rows>(first() + t * part, kCache, 1000); }));
    with.push_back(speed(kMemory, [&](int t) { multiply<W, One, Rows>(first() + t * part, part, 1); }));
    alone.push_back(speed(kMemory, [&](int t) { read_all(first() + t * part, part); }));
    share.push_back(100 * with.back() / alone.back());
  }
  std::printf("%-7s  cache %6.1f   memory %6.1f   read alone %6.1f   share %5.1f %%\n", name, median(cache),
              median(with), median(alone), median(share));
}

template <DType T>
constexpr auto of_32 = measure<Weights32<T>, OneRow32, Rows32<Weights32<T>>>;
template <DType T>
constexpr auto of_256 = measure<Weights256<T>, OneRow256, Rows256<Weights256<T>>>;

}  // namespace
}  // namespace CPU_VARIANT

int main(int argc, char** argv) {
  using namespace CPU_VARIANT;
  if (argc > 1) threads = std::atoi(argv[1]);
  std::memset(memory.data(), 0x35, memory.size());
  of_32<DType::Q8_0>("q8_0");
  of_32<DType::Q4_0>("q4_0");
  of_32<DType::MXFP4>("mxfp4");
  of_256<DType::Q4_K>("q4_k");
  of_256<DType::Q5_K>("q5_k");
  of_256<DType::Q6_K>("q6_k");
  of_256<DType::IQ4_XS>("iq4_xs");
}
