// One launch of a kernel of tensors under construction: its operands, their facts and the numbers of the op.
#pragma once
#include <bit>
#include <initializer_list>
#include <span>

#include "gpu/launches.h"
#include "gpu_kernels.h"
#include "tensor/dtype.h"

namespace gimbal::gpu {

// An operand: some elements in a slot of the program, or in the scratch memory of the op.
struct Operand {
  uint32_t slot;
  uint64_t offset;  // bytes
  DType type;
  int rank = 0;
  int64_t dim[GIMBAL_MAX_RANK] = {}, stride[GIMBAL_MAX_RANK] = {};  // fastest first

  int64_t count() const;
  // The bytes that its elements reach.
  struct Range {
    uint64_t begin, end;
  };
  Range range() const;
};
Operand operand(const gimbal_value&);
// Blocks as bytes: the first dim has a row's.
Operand bytes_of(const gimbal_value&);
// Dense, of n elements, in the op's scratch memory, which grows by it.
Operand scratch(OpPlan&, DType, int64_t n);
// Words that the host gives, as i32; those of 16 bits with their sign.
Operand constants(OpPlan&, std::span<const uint16_t>);
Operand constants(OpPlan&, std::span<const uint32_t>);

// The number of a format in kernels/operands.inc.
uint32_t format_number(DType);

class TensorLaunch {
 public:
  TensorLaunch(OpPlan& plan, const char* kernel);
  // Operand i, 0 to 2: a, b and c.
  TensorLaunch& read(int i, const Operand&);
  // Elements that others of the same memory may lie between: all of `memory` is bound.
  TensorLaunch& read_with_memory(int i, const Operand&, const Operand& memory);
  TensorLaunch& write(const Operand&);
  void number(uint32_t v) { facts_[kNumbers + numbers_++] = v; }
  void number(float v) { number(std::bit_cast<uint32_t>(v)); }
  void number64(uint64_t v) { number(uint32_t(v)), number(uint32_t(v >> 32)); }
  void numbers(std::initializer_list<int64_t> all) {
    for (int64_t v : all) number(uint32_t(v));
  }
  // A lane for each word of the result, and for each of its elements of 8 bytes.
  void launch_elements();
  void launch(uint64_t lanes);
  void launch_groups(uint64_t groups);
  TensorLaunch& row(uint32_t values) { return p_.row = values, *this; }
  TensorLaunch& after_those_before() { return launch_.after_all = true, *this; }

 private:
  static constexpr size_t kOperandFacts = 20, kNumbers = 4 * kOperandFacts, kFacts = 128;
  void submit(uint64_t units, uint64_t groups);
  void bind(int binding, int facts, const Operand&, const Operand& memory);

  OpPlan& plan_;
  PlannedLaunch launch_;
  map_params p_{};
  uint32_t facts_[kFacts] = {};
  size_t numbers_ = 0;
  Operand result_{};
};

// Launches that convert, and that add.
void cast(OpPlan&, const Operand& from, const Operand& to);
void add(OpPlan&, const Operand& a, const Operand& b, const Operand& to);
// The op's result: elements of x, chosen along a dim by dense or strided ids.
void gather(OpPlan&, const gimbal_value& x, const Operand& ids, int64_t along);
// A row that each of so many rows has.
Operand repeated(const gimbal_value& row, int64_t rows);
// Calls launch(to) for a result in this format: the op's own, or one that is converted to it.
template <class Launch>
void computed_as(OpPlan& o, DType type, Launch launch) {
  const Operand out = operand(o.out());
  if (out.type == type) return launch(out);
  const Operand wide = scratch(o, type, out.count());
  launch(wide);
  cast(o, wide, out);
}

}  // namespace gimbal::gpu
