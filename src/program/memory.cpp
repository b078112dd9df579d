#include "program/passes.h"

#include <algorithm>

#include "base/format.h"
#include "device/values.h"
#include "program/lifetimes.h"

namespace gimbal {
namespace {

bool of_one_row(const Program& p, const gimbal_op& op) { return rows_of(p.values[op.out[0]]) == 1; }

// Also quantization: its input is the product's, not rounded yet.
bool feeds_product(const gimbal_op& op) {
  const auto kind = OpKind(op.kind);
  return kind == OpKind::MatMul || kind == OpKind::ExpertMatMul || kind == OpKind::Quantize;
}

Error too_large(const Program& p, uint16_t value) {
  return {Code::OutOfMemory,
          format("activations up to '{}' ({}) need more memory than any device can have", p.info[value].name,
                 to_string(p.info[value].shape)),
          ""};
}

}  // namespace

Status plan_work(Program& p, uint64_t alignment, Kept keep) {
  std::vector<Lifetime> lives;
  std::vector<int> index(p.values.size(), -1);
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    for (uint16_t out : outputs_of(op)) {
      const uint16_t root = p.info[out].root;  // itself, unless an op writes through a view
      if (p.values[root].slot != uint32_t(Slot::Work)) continue;
      if (index[root] < 0) {
        index[root] = int(lives.size());
        const auto bytes = slot_end(0, p.values[root].bytes, alignment);
        if (!bytes) return too_large(p, root);
        lives.push_back({root, i, i, *bytes, 0});
      }
      size_t& last = lives[size_t(index[root])].last;
      last = std::max(last, i);
    }
    const bool kept = keep == Kept::ProductInputs ? feeds_product(op)
                                                  : OpKind(op.kind) == OpKind::MatMul && of_one_row(p, op);
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
  std::vector<const Lifetime*> placed;  // by offset
  uint64_t total = 0;
  for (Lifetime* l : order) {
    const auto at = lowest_free(placed.data(), placed.size(), *l);
    if (!at) return too_large(p, l->value);
    l->offset = *at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), l,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  l);
    total = std::max(total, *at + l->bytes);
  }
  for (const Lifetime& l : lives) p.values[l.value].offset = l.offset;
  for (size_t v = 0; v < p.values.size(); v++)
    if (p.info[v].root != v) {
      p.values[v].offset = p.values[p.info[v].root].offset;
      p.values[v].slot = p.values[p.info[v].root].slot;
    }
  p.slot_bytes[size_t(Slot::Work)] = total;
  return Done{};
}

}  // namespace gimbal
