// Shared by the op definitions: shape rules, inputs of test cases, benchmark sizes.
#pragma once
#include <functional>
#include <initializer_list>
#include <utility>

#include "base/format.h"
#include "ops/op_def.h"
#include "tensor/quant.h"

namespace gimbal::ops {

// ---- rules of shapes
inline bool is_f32(const Shape& s) { return s.type == DType::F32; }
inline bool is_f32_rows(const Shape& s) { return is_f32(s) && s.rank == 2; }
inline bool is_index_row(const Shape& s) { return s.type == DType::I32 && s.rank == 1; }
inline bool is_cache(const Shape& s) {
  return s.rank == 4 && s.dim[2] == kPagePositions && has(kCacheTypes, s.type);
}
// For ops that read or write caches: whether position, sequence and pages fit the number of rows.
inline bool is_place_in_caches(const Shape& position, const Shape& sequence, const Shape& pages,
                               int64_t rows) {
  return is_index_row(position) && is_index_row(sequence) && position.dim[0] == rows &&
         sequence.dim[0] == rows && pages.type == DType::I32 && pages.rank == 2;
}
inline constexpr const char* kPlaceRule =
    "positions and sequences must be i32, one per row; pages an i32 matrix";

// ---- tolerances
inline constexpr double kRounding = 0x1p-24;  // the largest relative error of one rounding
template <int Roundings>
double roundings(std::span<const Shape>) {
  return Roundings * kRounding;
}

// ---- references
// The product of two rows of k values, and the sum of its terms' magnitudes.
std::pair<double, double> dot(const double* w, const double* x, size_t k);

// ---- inputs of cases
// A small random generator of our own: the same cases on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }
  // Roughly normal: the sum of four uniform numbers.
  float normal() {
    float s = 0;
    for (int i = 0; i < 4; i++) s += float(int32_t(next() >> 40)) / float(1 << 24) - 0.5f;
    return s * 1.7f;
  }
  int below(int n) { return int(next() >> 33) % n; }

 private:
  uint64_t state_;
};

CaseInput floats(Shape, Numbers&, float scale = 1);      // normal numbers times `scale`
CaseInput integers(Shape, const std::vector<int32_t>&);  // i32
CaseInput activations(Shape, Numbers&);  // as quantize writes them; codes over the whole range
CaseInput weights(Shape, Numbers&);      // a matrix of any format that can be decoded

// "mat_mul q8_0 k=288"
std::string case_name(OpKind, DType named, const std::string& text);

// Cases of an op over f32 rows, with widths around the vector widths of kernels. `add` adds the inputs and
// parameters of one case of `width` values per row; it returns false to skip the case.
using AddInputs = std::function<bool(Case&, int width, Numbers&)>;
std::vector<Case> row_cases(OpKind, DType named, const AddInputs& add);
// f32[width, capacity] for a case.
CaseInput rows_of(const Case&, int width, Numbers&, float scale = 1);

// ---- benchmark sizes
inline constexpr int kBenchColumns = 2048, kBenchOutputs = 8192;  // of a matrix
inline constexpr int kBenchWidth = 4096;                          // of ops on rows
// For ops that read only `inputs` f32 inputs of the usual width, `rows` rows each.
Bench bench_of_rows(int inputs, int rows, const OpParams& params = {}, int width = kBenchWidth);
// One whole number per row: begin, begin + step ..., modulo `below`.
BenchInput bench_integers(int rows, int64_t begin, int64_t step, int64_t below);

}  // namespace gimbal::ops
