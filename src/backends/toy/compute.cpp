#include "compute.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/backend_impl.h"
#include "device/claims.h"
#include "device/values.h"
#include "ops/op_def.h"
#include "ops/reference.h"
#include "tensor/activations.h"
#include "tensor/quant.h"

namespace gimbal::GIMBAL_BACKEND_NAME {
namespace {

// The weights that can be read as they lie in a file and whose products take such activations.
DTypeSet weights_with(DType activations) {
  DTypeSet all = 0;
  for (DType t : kAllDTypes)
    if (can_decode(t) && tensor_tail_bytes(t) == 0 && activation_type(t) == activations) all |= set_of(t);
  return all;
}

reference::Tensor decode(const gimbal_value& v, const unsigned char* bytes) {
  Shape s = shape_of(v);
  if (v.layout == GIMBAL_CACHE) s.type = DType::F32;
  reference::Tensor t = reference::decode(s, bytes);
  t.shape.type = DType(v.dtype);
  return t;
}

// A block of int8 codes with their scale and sums. A value that is not finite makes the whole block NaN.
void store_activations(DType type, const double* x, unsigned char* block) {
  const Activations a = activations_of(type);
  double largest = 0;
  bool finite = true;
  for (int i = 0; i < a.block; i++)
    finite &= std::isfinite(x[i]), largest = std::max(largest, std::fabs(x[i]));
  const float scale = !finite ? NAN : largest < double(kLeastScaled) ? 0.f : float(largest / 127);
  int8_t codes[256];
  for (int i = 0; i < a.block; i++)
    codes[i] = scale > 0 ? int8_t(std::clamp(std::nearbyint(x[i] / double(scale)), -127., 127.)) : int8_t(0);
  put_activations(a, scale, codes, block);
}

// The first n values, in the output's own format.
void store(const gimbal_value& v, const std::vector<double>& values, size_t n, unsigned char* to) {
  const DType type = v.layout == GIMBAL_CACHE ? DType::F32 : DType(v.dtype);
  const size_t block = info(type).block, bytes = info(type).bytes;
  for (size_t i = 0; i < n; i += block, to += bytes) {
    if (type != DType::F32) {
      store_activations(type, &values[i], to);
      continue;
    }
    const float one = float(values[i]);
    std::memcpy(to, &one, 4);
  }
}

}  // namespace

std::vector<gimbal_kernel_info> kernel_rows() {
  std::vector<gimbal_kernel_info> rows;
  auto add = [&](const char* name, OpKind op, DTypeSet formats = set_of(DType::F32)) {
    rows.push_back(claims(name, op, formats, GIMBAL_DENSE));
    // One multiply and one add, each rounded in double: not the order in which gimbal's exact kernels add.
    rows.back().numerics = GIMBAL_FAST;
  };
  auto product = [&](const char* name, DType activations) {
    add(name, OpKind::MatMul, weights_with(activations));
    rows.back().in[1] = claim_of(set_of(activations));
  };
#define NAME(op) GIMBAL_STR(GIMBAL_BACKEND_NAME) ".reference." op
  add(NAME("embed"), OpKind::Embed,
      weights_with(DType::F32) | weights_with(DType::A8_32) | weights_with(DType::A8_256));
  add(NAME("rms_norm"), OpKind::RmsNorm);
  add(NAME("quantize"), OpKind::Quantize, set_of(DType::A8_32, DType::A8_256));
  product(NAME("mat_mul.float"), DType::F32);
  product(NAME("mat_mul.a8_32"), DType::A8_32);
  product(NAME("mat_mul.a8_256"), DType::A8_256);
  add(NAME("rope"), OpKind::Rope);
  add(NAME("cache_write"), OpKind::CacheWrite, kCacheTypes);
  add(NAME("attention"), OpKind::Attention, kCacheTypes);
#define GIMBAL_ELEMENTWISE(number, id, name, ...) add(NAME(name), OpKind::id);
#include "ops/ops.def"
  add(NAME("norm"), OpKind::Norm);
  add(NAME("route"), OpKind::Route);
  add(NAME("combine"), OpKind::Combine);
  add(NAME("slice"), OpKind::Slice);
  add(NAME("concat"), OpKind::Concat);
  add(NAME("add_scaled"), OpKind::AddScaled);
  add(NAME("select_rows"), OpKind::SelectRows);
#undef NAME
  return rows;
}

uint64_t cache_bytes(int64_t head_dim, int64_t heads, int64_t page, int64_t pages) {
  return sizeof(float) * uint64_t(head_dim) * uint64_t(heads) * uint64_t(page) * uint64_t(pages);
}

void compute(const gimbal_program& p, const gimbal_op& op, unsigned char* const* memory, int64_t rows) {
  std::vector<reference::Tensor> inputs;
  for (uint16_t in : inputs_of(op)) {
    const gimbal_value& v = p.values[in];
    inputs.push_back(decode(v, memory[v.slot] + v.offset));
  }
  std::vector<const reference::Tensor*> pointers;
  for (const reference::Tensor& t : inputs) pointers.push_back(&t);

  const gimbal_value& v = p.values[op.out[0]];
  reference::Tensor out{shape_of(v), {}};
  const size_t all = size_t(out.shape.count());
  const bool cache = v.layout == GIMBAL_CACHE;
  if (cache) out.values = inputs[0].values;
  else out.values.resize(all);
  reference::run(OpKind(op.kind), params_of(op), pointers, out, int(rows));
  // A cache has its rows anywhere; of everything else only the rows of this step may be touched.
  store(v, out.values, cache ? all : all / size_t(rows_of(v)) * size_t(rows), memory[v.slot] + v.offset);
}

}  // namespace gimbal::GIMBAL_BACKEND_NAME
