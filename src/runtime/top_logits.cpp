#include "runtime/top_logits.h"

#include <algorithm>

#include "program/builder.h"

namespace gimbal {

// 1 is for greedy sampling, 64 is enough for the usual --top-k 40.
static constexpr int kCounts[] = {1, 64};

std::vector<TopLogitsProgram> plan_top_logits(const Device& device, const gimbal_value& logits, int rows,
                                              const KernelPreference& wish, uint64_t* output_bytes) {
  std::vector<TopLogitsProgram> all;
  uint64_t end = *output_bytes;
  KernelPreference any = wish;
  any.strict = false;  // an op that the user did not request must not refuse the model
  for (int k : kCounts) {
    ProgramBuilder p(device, rows, rows);
    p.layer(kAfterLayers);
    p.continue_at(Slot::Output, logits.offset);
    const Value row =
        p.input("logits", Shape(DType::F32, {logits.dim[0], rows}), Slot::Output, GIMBAL_OUT_ROWS);
    p.continue_at(Slot::Output, *output_bytes);
    const Value top = p.top_k(row, k);
    p.output(top);
    auto program = std::move(p).finish();
    if (!program) return {};
    end = std::max(end, program->slot_bytes[size_t(Slot::Output)]);
    TopLogitsProgram l{k, std::move(*program), {}, 0};
    l.offset = l.program.values[top.id].offset;
    auto choices = assign_kernels(l.program, device, any);
    if (!choices) return {};
    l.choices = std::move(*choices);
    all.push_back(std::move(l));
  }
  *output_bytes = end;
  return all;
}

}  // namespace gimbal
