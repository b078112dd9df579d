// hot: every number of a reference
#include "ops/reference.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "ops/op_def.h"
#include "tensor/activations.h"
#include "tensor/quant.h"

namespace gimbal::reference {
namespace {

// Decodes rows of activations: code times scale. A scale per row is
// taken from the row's first block, as kernels do. Kernels rely on the
// stored sums of the codes, so a group with a wrong sum decodes to NaN.
void decode_activations(DType t, const std::byte* p, int64_t row, int64_t n, double* out) {
  const Activations a = activations_of(t);
  const auto scale_at = [&](int64_t i) {
    const int64_t block = (a.scale_of_row ? i / row * row : i) / a.block;
    return double(activation_scale(reinterpret_cast<const uint8_t*>(p) + block * a.bytes));
  };
  for (int64_t i = 0; i < n; i += a.sum_of) {
    const auto* block = reinterpret_cast<const uint8_t*>(p) + i / a.block * a.bytes;
    const int first = int(i % a.block);
    const auto* codes = reinterpret_cast<const int8_t*>(block) + a.codes + first;
    const int sum = std::accumulate(codes, codes + a.sum_of, 0);
    const bool right = activation_sum(a, block, first / a.sum_of) == sum;
    for (int j = 0; j < a.sum_of; j++) out[i + j] = right ? scale_at(i) * codes[j] : NAN;
  }
}

}  // namespace

Tensor decode(const Shape& shape, const void* dense) {
  Tensor t{shape, std::vector<double>(size_t(shape.count()))};
  const auto* p = static_cast<const std::byte*>(dense);
  const int64_t n = shape.count();
  if (shape.type == DType::I32) {
    for (int64_t i = 0; i < n; i++) t.values[size_t(i)] = read_le<int32_t>(p + 4 * i);
  } else if (is_activation(shape.type)) {
    decode_activations(shape.type, p, shape.dim[0], n, t.values.data());
  } else {
    std::vector<float> f(static_cast<size_t>(n));
    decode_tensor(shape.type, p, n, f.data());
    std::copy(f.begin(), f.end(), t.values.begin());
  }
  return t;
}

void run(OpKind kind, const OpParams& params, std::span<const Tensor* const> in, Tensor& out, int rows,
         std::vector<double>* magnitude, Tensor* state, std::vector<double>* state_magnitude) {
  if (state_magnitude) state_magnitude->assign(state->values.size(), 0);
  if (magnitude) magnitude->assign(out.values.size(), 0);
  const auto last = size_t(out.shape.last());
  const size_t computed = out.values.size() / last * std::min(size_t(rows), last);
  check_of(kind).reference({params, in, out, rows, computed, magnitude, state, state_magnitude});
}

}  // namespace gimbal::reference
