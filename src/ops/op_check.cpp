#include "ops/op_def.h"

#include <array>

namespace gimbal {

const OpCheck& check_of(OpKind kind) {
  static constexpr OpCheck kNone;
  static constexpr auto kAll = [] {
    std::array<const OpCheck*, kOpNumbers> all{};
#define GIMBAL_OP(number, id, ...) all[number] = &ops::id##Check;
#include "ops/ops.def"
    return all;
  }();
  return is_known(kind) ? *kAll[size_t(kind)] : kNone;
}

std::vector<Case> cases(OpKind kind, DType named) {
  return is_known(kind) ? check_of(kind).cases(named) : std::vector<Case>();
}

double tolerance(OpKind kind, std::span<const Shape> inputs) { return check_of(kind).tolerance(inputs); }

}  // namespace gimbal
