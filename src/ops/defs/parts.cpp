// hot: every number of a reference
#include "ops/defs/parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/activations.h"
#include "tensor/format.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal::ops {

// Four independent sums, because each addition waits for the previous one.
std::pair<double, double> dot(const double* w, const double* x, size_t k) {
  double s[4] = {}, terms[4] = {};
  size_t j = 0;
  for (; j + 4 <= k; j += 4)
    for (size_t i = 0; i < 4; i++) s[i] += w[j + i] * x[j + i], terms[i] += std::fabs(w[j + i] * x[j + i]);
  for (; j < k; j++) s[0] += w[j] * x[j], terms[0] += std::fabs(w[j] * x[j]);
  return {(s[0] + s[1]) + (s[2] + s[3]), (terms[0] + terms[1]) + (terms[2] + terms[3])};
}

CaseInput floats(Shape s, Numbers& n, float scale) {
  std::vector<float> x(static_cast<size_t>(s.count()));
  for (float& v : x) v = n.normal() * scale;
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes()))};
  encode(s.type, x.data(), s.count(), in.dense.data());
  return in;
}

CaseInput integers(Shape s, const std::vector<int32_t>& v) {
  CaseInput in{s, std::vector<std::byte>(v.size() * 4)};
  std::memcpy(in.dense.data(), v.data(), in.dense.size());
  return in;
}

CaseInput activations(Shape s, Numbers& n) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes()))};
  const Activations a = activations_of(s.type);
  float scale = 0;
  for (int64_t b = 0; b < s.count() / a.block; b++) {
    const bool same = a.scale_of_row && b * a.block % s.dim[0] != 0;
    if (!same) scale = std::fabs(n.normal()) * 0.01f + 1e-4f;
    int8_t codes[256];
    for (int i = 0; i < a.block; i++) codes[i] = int8_t(n.below(255) - 127);
    put_activations(a, scale, codes, reinterpret_cast<uint8_t*>(in.dense.data()) + b * a.bytes);
  }
  return in;
}

CaseInput weights(Shape s, Numbers& n) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes() + tensor_tail_bytes(s.type)))};
  if (encodes_fast(s.type)) in = floats(s, n, 0.1f);
  else random_blocks(s.type, s.count(), in.dense.data(), [&] { return n.next(); });
  if (tensor_tail_bytes(s.type)) {
    const float scale = 0.5f + std::fabs(n.normal());
    std::memcpy(in.dense.data() + s.bytes(), &scale, 4);
  }
  return in;
}

std::string case_name(OpKind kind, DType named, const std::string& text) {
  return format("{} {} {}", info(kind).name, info(named).name, text);
}

std::vector<Case> row_cases(OpKind kind, DType named, const AddInputs& add) {
  std::vector<Case> all;
  Numbers n(uint64_t(kind) * 131 + uint64_t(named));
  for (int width : {1, 8, 15, 16, 17, 64, 128, 172, 256, 384, 1000, 2048, 3200})
    for (int rows : {1, 3}) {
      Case c{case_name(kind, named, format("width={} rows={}", width, rows)), kind, {}, {}, rows, rows + 1};
      if (add(c, width, n)) all.push_back(std::move(c));
    }
  return all;
}

CaseInput rows_of(const Case& c, int width, Numbers& n, float scale) {
  return floats(Shape(DType::F32, {width, c.capacity}), n, scale);
}

Bench bench_of_rows(int inputs, int rows, const OpParams& params, int width) {
  Bench b{format("{}", width), {}, params};
  b.inputs.assign(size_t(inputs), {Shape(DType::F32, {width, rows}), {}});
  return b;
}

BenchInput bench_integers(int rows, int64_t begin, int64_t step, int64_t below) {
  BenchInput in{Shape(DType::I32, {rows}), {}};
  for (int i = 0; i < rows; i++) in.whole.push_back(int32_t((begin + step * i) % below));
  return in;
}

}  // namespace gimbal::ops
