// Operations whose kernel is a text of the program (gpu/text/kernels/custom.k).
#include <algorithm>

#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "tensor/format.h"

namespace gimbal::gpu {
namespace {

constexpr int kMostOperands = 3;
// Those that are computed as f32.
constexpr DTypeSet kFloats = set_of(DType::F32, DType::F16, DType::BF16);

bool is_plain(const Operand& o) {
  return o.type == DType::F32 && o.rank <= 1 && (o.rank == 0 || o.stride[0] == 1);
}

// Size, rank, and eight dims, slowest first.
void number_dims(TensorLaunch& l, const gimbal_value& v) {
  int64_t count = 1;
  for (int i = 0; i < v.rank; i++) count *= v.dim[i];
  l.numbers({count, v.rank});
  for (int i = 0; i < GIMBAL_MAX_RANK; i++) l.numbers({i < v.rank ? v.dim[v.rank - 1 - i] : 1});
}

void plan_custom(OpPlan& o) {
  const auto& kernel = *reinterpret_cast<const gimbal_host_kernel*>(o.op.param.i[0]);
  computed_as(o, DType::F32, [&](const Operand& to) {
    Operand in[kMostOperands];
    bool converted = false;
    for (int i = 0; i < o.op.inputs; i++) {
      const Operand x = operand(o.in(i));
      in[i] = is_plain(x) ? x : scratch(o, DType::F32, x.count());
      if (!is_plain(x)) cast(o, x, in[i]), converted = true;
    }
    TensorLaunch l(o, kernel.text);  // as Device::add_text keeps it
    for (int i = 0; i < o.op.inputs; i++) l.read(i, in[i]);
    l.write(to);
    for (int i = 0; i < kMostOperands; i++) number_dims(l, o.in(std::min(i, o.op.inputs - 1)));
    number_dims(l, o.out());
    if (converted) l.after_those_before();
    l.launch_elements();
  });
}

}  // namespace

Row custom_row(Rows& all, const gimbal_kernel_info& claims) {
  Row row{claims, claims.name, plan_custom};
  for (gimbal_operand& in : row.info.in) in.dtypes &= kFloats;
  for (gimbal_operand& out : row.info.out) out.dtypes &= kFloats;
  auto& limits = *all.limits.emplace_back(std::make_unique<std::vector<gimbal_limit>>(tensor_sizes()));
  limits.insert(limits.end(), claims.limits, claims.limits + claims.n_limits);
  row.info.limits = limits.data(), row.info.n_limits = uint32_t(limits.size());
  return row;
}

}  // namespace gimbal::gpu
