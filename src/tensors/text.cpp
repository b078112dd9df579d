// Tensors as text, for people: the first and last values of each dim, with dims and format.
#include <cmath>

#include "tensors/recording.h"

namespace gimbal::v1 {
namespace {

constexpr int64_t kEdge = 3;  // values at each end of a long dim

struct Printed {
  const std::vector<double>& values;
  const Tensor& tensor;
  bool whole;  // numbers without a fraction
};

std::string number(const Printed& p, int64_t at) {
  const double v = p.values[size_t(at)];
  if (p.tensor.dtype() == DType::Bool) return v != 0 ? "true" : "false";
  return p.whole ? format("{:.0f}", v) : format("{:.6g}", v);
}

void write(const Printed& p, int dim, int64_t at, std::string& out) {
  if (dim == p.tensor.rank()) {
    out += number(p, at);
    return;
  }
  const int64_t n = p.tensor.dim(dim);
  int64_t below = 1;
  for (int i = dim + 1; i < p.tensor.rank(); i++) below *= p.tensor.dim(i);
  const bool last = dim + 1 == p.tensor.rank();
  out += "[";
  for (int64_t i = 0; i < n; i++) {
    if (i) out += last ? ", " : ",\n" + std::string(size_t(dim) + 1, ' ');
    if (n > 2 * kEdge && i == kEdge) {
      out += last ? "..., " : "...,\n" + std::string(size_t(dim) + 1, ' ');
      i = n - kEdge;
    }
    write(p, dim + 1, at + i * below, out);
  }
  out += "]";
}

}  // namespace

std::string Tensor::text() const {
  if (!ok()) return "failed: " + error().message;
  if (state_->recording) return describe(*this) + ", known when the recorded function runs";
  const Unrecorded now;
  const Tensor dense = to(DType::F64);
  auto values = dense.values<double>();
  if (!values) return "failed: " + values.error().message;
  std::string out;
  write(
      {*values, *this, !gimbal::has(gimbal::kFloats, state_->type) && gimbal::info(state_->type).block == 1},
      0, 0, out);
  return out + " " + describe(*this);
}

}  // namespace gimbal::v1
