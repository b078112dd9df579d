#include "runtime/leading.h"

#include <algorithm>

#include "ops/shapes.h"

namespace gimbal {

// 1 is what greedy sampling asks for, 64 is enough for the usual --top-k 40.
static constexpr int kCounts[] = {1, 64};

std::vector<LeadingProgram> plan_leading(const Device& device, const gimbal_value& logits,
                                         const KernelPreference& wish, uint64_t* output_bytes) {
  std::vector<LeadingProgram> all;
  uint64_t end = *output_bytes;
  KernelPreference any = wish;
  any.strict = false;  // an op that the user did not ask for must not refuse the model
  for (int k : kCounts) {
    const Shape row(DType::F32, {logits.dim[0], 1});
    OpParams params;
    params.i[0] = k;
    const auto shape = output_shape(OpKind::TopK, params, std::span(&row, 1));
    if (!shape) return {};
    LeadingProgram l{k, {}, {}, align_up(*output_bytes, kAlignment)};
    auto add = [&](const char* name, const Shape& s, uint64_t offset) {
      gimbal_value v{};
      v.slot = uint32_t(Slot::Output), v.dtype = uint8_t(s.type), v.rank = uint8_t(s.rank);
      v.layout = GIMBAL_DENSE, v.extent = GIMBAL_ALL_ROWS, v.offset = offset, v.bytes = uint64_t(s.bytes());
      std::copy(s.dim, s.dim + 4, v.dim);
      l.program.values.push_back(v);
      l.program.info.push_back({name, s, uint16_t(l.program.info.size())});
    };
    add("logits", row, logits.offset);
    add("leading", *shape, l.offset);
    gimbal_op op{};
    op.kind = uint16_t(OpKind::TopK), op.inputs = 1, op.out = 1, op.param.i[0] = k;
    l.program.ops.push_back(op);
    l.program.layer.push_back(kAfterLayers);
    end = std::max(end, l.offset + uint64_t(shape->bytes()));
    l.program.slot_bytes[size_t(Slot::Output)] = align_up(l.offset + uint64_t(shape->bytes()), kAlignment);
    auto choices = assign_kernels(l.program, device, any);
    if (!choices) return {};
    l.choices = std::move(*choices);
    all.push_back(std::move(l));
  }
  *output_bytes = align_up(end, kAlignment);
  return all;
}

}  // namespace gimbal
