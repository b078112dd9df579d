// hot: every number of a reference
#include "ops/reference.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/bytes.h"
#include "ops/op_def.h"
#include "ops/rounding.h"
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

// An integer of any format; of u64 its bits.
int64_t integer_at(DType t, const std::byte* p) {
  switch (t) {
    case DType::I64:
    case DType::U64: return read_le<int64_t>(p);
    case DType::I32: return read_le<int32_t>(p);
    case DType::U32: return read_le<uint32_t>(p);
    case DType::I16: return read_le<int16_t>(p);
    case DType::U16: return read_le<uint16_t>(p);
    case DType::I8: return read_le<int8_t>(p);
    default: return read_le<uint8_t>(p);
  }
}

bool is_whole(DType t) { return has(kNumbers, t) && !is_float_format(t); }

}  // namespace

Tensor empty(const Shape& shape) {
  const auto n = size_t(shape.count());
  return {shape, std::vector<double>(n), std::vector<int64_t>(is_whole(shape.type) ? n : 0)};
}

Tensor decode(const Shape& shape, const void* dense) {
  Tensor t = empty(shape);
  const auto* p = static_cast<const std::byte*>(dense);
  const int64_t n = shape.count(), size = info(shape.type).bytes;
  if (is_whole(shape.type)) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t v = integer_at(shape.type, p + i * size);
      t.whole[size_t(i)] = v;
      t.values[size_t(i)] = shape.type == DType::U64 ? double(uint64_t(v)) : double(v);
    }
  } else if (shape.type == DType::F64) {
    std::memcpy(t.values.data(), p, size_t(n * size));
  } else if (is_float_format(shape.type) && size == 1) {
    for (int64_t i = 0; i < n; i++) t.values[size_t(i)] = small_float(shape.type, read_le<uint8_t>(p + i));
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
  const size_t computed = def(kind).row_inputs() == 0
                              ? out.values.size()
                              : out.values.size() / last * std::min(size_t(rows), last);
  check_of(kind).reference({params, in, out, rows, computed, magnitude, state, state_magnitude});
}

}  // namespace gimbal::reference
