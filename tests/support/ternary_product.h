// A product of ternary weights in memory, for the rows of the CPU backend: the weights packed, the
// activations with one scale a row, and the outputs that plain arithmetic gives.
#pragma once
#include <cstring>
#include <vector>

#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "packing/pack.h"
#include "tensor/activations.h"

namespace gimbal::test {

struct TernaryProduct {
  gimbal_op op{};
  gimbal_value weights{}, activations{}, out{};
  std::vector<uint8_t> packed, x;
  std::vector<float> want;
  int rows;

  // Weights: rows of `columns`, -1, 0 or 1 (2: the code 3); activations: as many rows as there are.
  TernaryProduct(DType type, int width, const std::vector<int8_t>& w, const std::vector<int8_t>& a,
                 float weight_scale, float activation_scale) {
    const auto columns = size_t(width);
    const size_t outputs = w.size() / columns, block = size_t(info(type).block), quarter = block / 4;
    rows = int(a.size() / columns);
    std::vector<uint8_t> dense(w.size() / 4 + size_t(tensor_tail_bytes(type)));
    for (size_t i = 0; i < w.size(); i++) {  // tensor/quant/i2_s.inc
      const size_t in_block = i % block;
      dense[i / block * quarter + in_block % quarter] |=
          uint8_t((w[i] + 1) << (6 - 2 * (in_block / quarter)));
    }
    std::memcpy(&dense[w.size() / 4], &weight_scale, 4);
    packed.resize(size_t(cpu::packed_bytes(type, width, int64_t(outputs))) + 64);
    packing::pack(type, width, int64_t(outputs), dense.data(), aligned(), 0, int64_t(outputs));
    const Activations layout = activations_of(DType::A8_ROW);
    x.resize(a.size() / size_t(layout.block) * size_t(layout.bytes));
    for (size_t b = 0; b < a.size() / size_t(layout.block); b++)
      put_activations(layout, activation_scale, &a[b * size_t(layout.block)], &x[b * size_t(layout.bytes)]);
    for (size_t r = 0; r < size_t(rows); r++)
      for (size_t o = 0; o < outputs; o++) {
        int64_t sum = 0;
        for (size_t k = 0; k < columns; k++) sum += int64_t(w[o * columns + k]) * a[r * columns + k];
        want.push_back(float(sum) * (weight_scale * activation_scale));
      }
    op.inputs = 2;
    weights.dim[0] = width, weights.dim[1] = int64_t(outputs);
  }
  uint8_t* aligned() {
    const auto at = reinterpret_cast<uintptr_t>(packed.data());
    return packed.data() + (64 - at % 64) % 64;
  }
  // The result of a row, by all work items at once or one by one from the last to the first.
  std::vector<float> computed(const CpuKernel& row, bool one_by_one) {
    std::vector<float> y(want.size(), -1.f);
    CpuTask t{};
    t.op = &op, t.out = &out, t.in[0] = &weights, t.in[1] = &activations;
    t.x[0] = aligned(), t.x[1] = x.data(), t.y = reinterpret_cast<unsigned char*>(y.data()), t.rows = rows;
    const int64_t items = row.work(t).items;
    if (one_by_one)
      for (int64_t i = items; i-- > 0;) row.launch(t, i, i + 1);
    else row.launch(t, 0, items);
    return y;
  }
};

}  // namespace gimbal::test
