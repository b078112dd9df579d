#include "ops/op_def.h"

#include <array>
#include <cstring>

namespace gimbal {

const OpDef& def(OpKind kind) {
  static constexpr OpDef kNone;
  static constexpr auto kAll = [] {
    std::array<const OpDef*, kOpNumbers> all{};
#define GIMBAL_OP(number, id, ...) all[number] = &ops::id;
#include "ops/ops.def"
    return all;
  }();
  return is_known(kind) ? *kAll[size_t(kind)] : kNone;
}

int OpDef::max_inputs() const {
  int n = 0;
  while (size_t(n) < kMaxInputs && inputs[n].role != Role::None) n++;
  return n;
}
int OpDef::first(Role role) const {
  for (size_t i = 0; i < kMaxInputs; i++)
    if (inputs[i].role == role) return int(i);
  return -1;
}
bool OpDef::has(Role role) const { return first(role) >= 0; }

uint32_t OpDef::row_inputs() const {
  uint32_t bits = 0;
  for (size_t i = 0; i < kMaxInputs; i++) bits |= uint32_t(by_row(inputs[i].role)) << i;
  return bits;
}

int64_t OpDef::integer(const OpParams& p, const char* name, int64_t otherwise) const {
  for (size_t i = 0; i < std::size(integers); i++)
    if (integers[i] && !std::strcmp(integers[i], name)) return p.i[i];
  return otherwise;
}

Cost cost(OpKind kind, std::span<const Shape> in, const Shape& out, int64_t context) {
  const OpDef& op = def(kind);
  Cost c;
  for (const Shape& s : in) c.bytes_read += double(s.bytes());
  c.bytes_written = double(out.bytes());
  c.operations = op.operations * double(out.count());
  if (op.cost) op.cost(c, in, out, context);
  return c;
}

}  // namespace gimbal
