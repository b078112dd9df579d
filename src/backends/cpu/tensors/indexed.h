// indexed_product: each slot of a row is multiplied with the matrix that its id names. Rising k, one fused
// multiply-add each, from +0, as product. A work item is 16 outputs of a slot.
#pragma once

#include "backends/cpu/tensors/view.h"

constexpr int64_t kIndexedDepth = 256;  // columns of a matrix that are read at once: whole blocks

inline int64_t tiles_of_outputs(const CpuTask& t) { return (t.out->dim[0] + 15) / 16; }
inline CpuWork tiles_of_slots(const CpuTask& t) {
  const int64_t slots = count_of(*t.out) / t.out->dim[0];
  return {slots * tiles_of_outputs(t), 2.0 * double(count_of(*t.out)) * double(t.in[0]->dim[0])};
}

// n columns from `first` on of a row of a matrix, as floats. `row` begins at a block.
inline void matrix_row(const gimbal_value& w, const unsigned char* memory, int64_t row, int64_t first,
                       int64_t n, float* to) {
  const DType type = DType(w.dtype);
  const auto block = block_of(type);
  if (block.values > 1) {
    const int64_t row_bytes = w.dim[0] / block.values * block.bytes;
    return gimbal::decode(type, memory + row * row_bytes + first / block.values * block.bytes, n, to);
  }
  with_type_of<float>(type, [&]<class T>(T*) {
    read_run(reinterpret_cast<const T*>(memory) + row * w.dim[0] + first, 1, n, to);
  });
}

inline void indexed_product(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &w = *t.in[0], &x = *t.in[1];
  const int64_t depth = w.dim[0], outputs = w.dim[1], tiles = tiles_of_outputs(t), slots = t.out->dim[1];
  const View id_view = input_view(t, 2);
  alignas(64) float panel[kIndexedDepth * 16], values[kIndexedDepth], factors[kIndexedDepth];
  for (int64_t item = begin; item < end; item++) {
    const int64_t place = item / tiles, row = place / slots, slot = place % slots, first = item % tiles * 16;
    const int64_t n = outputs - first < 16 ? outputs - first : 16;
    int64_t id = 0;
    id = *operand(id_view, place, 1, &id);
    F sums = splat(0.f);
    // A wrong id: check_ids finds it, and the result is not used.
    for (int64_t k = 0; k < depth && id >= 0 && id < w.dim[2]; k += kIndexedDepth) {
      const int64_t part = depth - k < kIndexedDepth ? depth - k : kIndexedDepth;
      for (int64_t o = 0; o < 16; o++) {
        if (o < n) matrix_row(w, t.x[0], id * outputs + first + o, k, part, values);
        for (int64_t i = 0; i < part; i++) panel[i * 16 + o] = o < n ? values[i] : 0.f;
      }
      const auto* from = reinterpret_cast<const float*>(t.x[1]) + row * x.stride[2] +
                         (x.dim[1] == 1 ? 0 : slot) * x.stride[1] + k * x.stride[0];
      for (int64_t i = 0; i < part; i++) factors[i] = from[i * x.stride[0]];
      for (int64_t i = 0; i < part; i++) sums = fma(splat(factors[i]), load(panel + i * 16), sums);
    }
    store_part(reinterpret_cast<float*>(t.y) + place * outputs + first, sums, int(n));
  }
}
