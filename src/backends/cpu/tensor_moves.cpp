// The kernels of the tensor library that move numbers and compute none: one text for all instruction sets.
#include "backends/cpu/kernel_abi.h"
#include "ops/op.h"
#include "tensor/half.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::OpKind;

template <class T>
inline T read(const void* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

#include "backends/cpu/tensors/moves.h"
#include "backends/cpu/tensors/number.h"
#include "backends/cpu/tensors/order.h"
#include "backends/cpu/tensors/view.h"

constexpr CpuRow row(const char* name, OpKind op, CpuWork (*work)(const CpuTask&),
                     void (*launch)(const CpuTask&, int64_t, int64_t)) {
  return {{name, uint16_t(op), 0, uint8_t(DType::F32), 0, CpuRows::Any}, work, launch};
}

constexpr CpuRow by_element(CpuRow r) {
  r.by_row = true;
  return r;
}

constexpr CpuRow with_scratch(CpuRow r, int64_t (*scratch)(const CpuTask&)) {
  r.scratch = scratch;
  return r;
}

const CpuRow kTable[] = {
    by_element(row("cpu.cast", OpKind::Cast, grains_of_output<2>, cast)),
    row("cpu.assign", OpKind::Assign, grains_of_output<2>, assign),
    by_element(row("cpu.select", OpKind::Select, grains_of_output<2>, select)),
    row("cpu.gather", OpKind::Gather, grains_of_output<4>, gather),
    row("cpu.scatter", OpKind::Scatter, lines_of_ids, scatter),
    row("cpu.check_ids", OpKind::CheckIds, one_item, check_ids),
    row("cpu.encode", OpKind::Encode, rows_to_encode, encode_rows),
    with_scratch(row("cpu.order", OpKind::Order, rows_to_order, order), scratch_of_order),
};

}  // namespace

extern const CpuRow* const tensors;
extern const size_t tensors_size;
const CpuRow* const tensors = kTable;
const size_t tensors_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
