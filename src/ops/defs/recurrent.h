// What ops with a recurrent state share: where the state of a row lies, shape rules, cases.
#pragma once
#include "ops/defs/parts.h"

namespace gimbal::ops {

// Offset of the state of a row's sequence. Inputs `at`, at + 1, at + 2: state, sequence, pages.
inline size_t state_begin(const reference::Call& c, size_t at, int row) {
  const auto sequence = size_t(c.x(at + 1)[size_t(row)]);
  return size_t(c.x(at + 2)[sequence * size_t(c.in[at + 2]->shape.dim[0])]) * size_t(c.state->shape.dim[0]);
}
// Index of a channel's place n in a state of pieces.
inline size_t in_piece(size_t channel, size_t channels, size_t places, size_t n) {
  const size_t first = channel / kStateLanes * kStateLanes,
               width = std::min<size_t>(kStateLanes, channels - first);
  return first * places + n * width + channel - first;
}
// A value of a state, and the roundings accumulated in it so far.
struct Place {
  const reference::Call& c;
  size_t at;
  double value() const { return c.state->values[at]; }
  double error() const { return c.state_magnitude ? (*c.state_magnitude)[at] : 0; }
};

inline constexpr const char* kStateRule =
    "the state must be f32[values, pages] with the size that the op needs";
inline bool is_state(const Shape& s, int64_t values) {
  return is_f32(s) && s.rank == 2 && s.dim[0] == values;
}

// ---- cases: interleaved rows of several sequences, whose states lie in pages out of order

inline constexpr int kPages = 4, kStateRows = 16;
inline void add_state(Case& c, int values, int sequences, Numbers& n) {
  c.inputs.push_back(floats(Shape(DType::F32, {values, kPages}), n));
  std::vector<int32_t> sequence, pages;
  // Runs of five, two, three, four, one and one rows of a sequence: kernels process several rows at once.
  for (int r = 0; r < c.capacity; r++) sequence.push_back((r / 5 + r / 7) % sequences);
  for (int s = 0; s < sequences; s++) pages.push_back((s * 2 + 1) % kPages);
  c.inputs.push_back(integers(Shape(DType::I32, {c.capacity}), sequence));
  c.inputs.push_back(integers(Shape(DType::I32, {1, sequences}), pages));
}
inline Case case_of(OpKind op, const std::string& name, int rows) {
  return {case_name(op, DType::F32, format("{} rows={}", name, rows)), op, {}, {}, rows, rows + 1};
}
// Numbers from `from` to `to`.
inline CaseInput between(Shape s, float from, float to, Numbers& n) {
  CaseInput in = floats(s, n);
  auto* v = reinterpret_cast<float*>(in.dense.data());
  for (int64_t i = 0; i < s.count(); i++) v[i] = from + (to - from) * float(n.below(10000)) / 10000;
  return in;
}

inline bool are_places(const Shape& sequence, const Shape& pages, int64_t rows) {
  return is_index_row(sequence) && sequence.dim[0] == rows && pages.type == DType::I32 && pages.rank == 2;
}
inline void add_bench_state(Bench& b, int values, int rows) {
  b.inputs.push_back({Shape(DType::F32, {values, 1}), {}});
  b.inputs.push_back(bench_integers(rows, 0, 0, 1));
  b.inputs.push_back({Shape(DType::I32, {1, 1}), {0}});
}

}  // namespace gimbal::ops
