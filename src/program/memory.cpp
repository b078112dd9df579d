#include "program/passes.h"

#include <algorithm>

#include "base/bytes.h"
#include "device/values.h"

namespace gimbal {
namespace {

struct Lifetime {
  uint16_t value;
  size_t first, last;  // ops, inclusive
  uint64_t bytes, offset = 0;
  bool meets(const Lifetime& o) const { return first <= o.last && o.first <= last; }
};

bool of_one_row(const Program& p, const gimbal_op& op) { return rows_of(p.values[op.out[0]]) == 1; }

}  // namespace

void plan_work(Program& p, uint64_t alignment) {
  std::vector<Lifetime> lives;
  std::vector<int> index(p.values.size(), -1);
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    for (uint16_t out : outputs_of(op))
      if (p.values[out].slot == uint32_t(Slot::Work) && index[out] < 0) {
        index[out] = int(lives.size());
        lives.push_back({out, i, i, align_up(p.values[out].bytes, alignment)});
      }
    const bool kept = OpKind(op.kind) == OpKind::MatMul && of_one_row(p, op);
    for (uint16_t in : inputs_of(op))
      if (int root = index[p.info[in].root]; root >= 0) {
        size_t& last = lives[size_t(root)].last;
        last = std::max(last, kept ? p.ops.size() : i);
      }
  }
  // Largest first, each at the lowest offset that is free during its lifetime.
  std::vector<Lifetime*> order;
  for (Lifetime& l : lives) order.push_back(&l);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::vector<Lifetime*> placed;  // by offset
  uint64_t total = 0;
  for (Lifetime* l : order) {
    uint64_t at = 0;
    for (const Lifetime* other : placed)
      if (l->meets(*other) && at < other->offset + other->bytes && other->offset < at + l->bytes)
        at = other->offset + other->bytes;
    l->offset = at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), l,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  l);
    total = std::max(total, at + l->bytes);
  }
  for (const Lifetime& l : lives) p.values[l.value].offset = l.offset;
  for (size_t v = 0; v < p.values.size(); v++)
    if (p.info[v].root != v) {
      p.values[v].offset = p.values[p.info[v].root].offset;
      p.values[v].slot = p.values[p.info[v].root].slot;
    }
  p.slot_bytes[size_t(Slot::Work)] = total;
}

}  // namespace gimbal
