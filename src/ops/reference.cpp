#include "ops/reference.h"

#include <algorithm>

#include "base/bytes.h"
#include "ops/op_def.h"
#include "tensor/quant.h"

namespace gimbal::reference {
namespace {

// Values of an activation row: code times scale. A8_32 and A8_256 are described in tensor/dtypes.def. Kernels
// rely on the sums of the codes that are stored with them, so a block whose sums are wrong decodes to NaN.
void decode_activations(DType t, const std::byte* p, int64_t n, double* out) {
  const int block = info(t).block, codes = t == DType::A8_32 ? 8 : 4, group = t == DType::A8_32 ? 32 : 16;
  for (int64_t i = 0; i < n; i += group) {
    const std::byte* b = p + i / block * info(t).bytes;
    const int first = int(i % block);
    int sum = 0;
    for (int j = 0; j < group; j++) sum += read_le<int8_t>(b + codes + first + j);
    const int stored =
        t == DType::A8_32 ? read_le<int32_t>(b + 4) : read_le<int16_t>(b + 260 + 2 * (first / 16));
    for (int j = 0; j < group; j++)
      out[i + j] = stored == sum ? double(read_le<float>(b)) * read_le<int8_t>(b + codes + first + j) : NAN;
  }
}

}  // namespace

Tensor decode(const Shape& shape, const void* dense) {
  Tensor t{shape, std::vector<double>(size_t(shape.count()))};
  const auto* p = static_cast<const std::byte*>(dense);
  const int64_t n = shape.count();
  if (shape.type == DType::I32) {
    for (int64_t i = 0; i < n; i++) t.values[size_t(i)] = read_le<int32_t>(p + 4 * i);
  } else if (shape.type == DType::A8_32 || shape.type == DType::A8_256) {
    decode_activations(shape.type, p, n, t.values.data());
  } else {
    std::vector<float> f(static_cast<size_t>(n));
    decode_tensor(shape.type, p, n, f.data());
    std::copy(f.begin(), f.end(), t.values.begin());
  }
  return t;
}

void run(OpKind kind, const OpParams& params, std::span<const Tensor* const> in, Tensor& out, int rows,
         std::vector<double>* magnitude) {
  if (magnitude) magnitude->assign(out.values.size(), 0);
  const auto last = size_t(out.shape.last());
  const size_t computed = out.values.size() / last * std::min(size_t(rows), last);
  check_of(kind).reference({params, in, out, rows, computed, magnitude});
}

}  // namespace gimbal::reference
