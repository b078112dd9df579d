#include "program/join.h"
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

// Places the values of one slot from `begin` on. Returns its end; nullopt: `failed` is too large.
std::optional<uint64_t> place_slot(Program& p, std::span<Lifetime> lives, Slot slot, uint64_t begin,
                                   uint16_t& failed) {
  // Largest first, each at the lowest offset that is free during its lifetime.
  std::vector<Lifetime*> order;
  for (Lifetime& l : lives)
    if (p.values[l.value].slot == uint32_t(slot)) order.push_back(&l);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::vector<const Lifetime*> placed;  // by offset
  uint64_t total = 0;
  for (Lifetime* l : order) {
    const auto at = lowest_free(placed.data(), placed.size(), *l);
    failed = l->value;
    if (!at || *at + l->bytes > kMaxSlotBytes - begin) return std::nullopt;
    l->offset = *at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), l,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  l);
    total = std::max(total, *at + l->bytes);
    p.values[l->value].offset = begin + *at;
  }
  return begin + total;
}

Status plan(Program& p, uint64_t alignment, Kept keep, std::span<const PassedValue> passed,
            std::span<const OpRange> together) {
  std::vector<Lifetime> lives;
  std::vector<int> index(p.values.size(), -1);
  std::optional<uint16_t> failed;
  auto use = [&](uint16_t root, size_t op) {
    if (index[root] < 0) {
      index[root] = int(lives.size());
      const auto bytes = slot_end(0, p.values[root].bytes, alignment);
      if (!bytes && !failed) failed = root;
      lives.push_back({root, op, op, bytes.value_or(0), 0});
    }
    Lifetime& life = lives[size_t(index[root])];
    life.first = std::min(life.first, op), life.last = std::max(life.last, op);
  };
  for (const PassedValue& v : passed) use(v.value, v.op);
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    const OpRange when = together.empty() ? OpRange{i, i + 1} : together[i];
    for (uint16_t out : outputs_of(op)) {
      const uint16_t root = p.info[out].root;  // itself, unless an op writes through a view
      if (p.values[root].slot == uint32_t(Slot::Work) || index[root] >= 0)
        use(root, when.begin), use(root, when.end - 1);
    }
    const bool kept = keep == Kept::ProductInputs ? feeds_product(op)
                                                  : OpKind(op.kind) == OpKind::MatMul && of_one_row(p, op);
    for (uint16_t in : inputs_of(op))
      if (const uint16_t root = p.info[in].root; index[root] >= 0)
        use(root, when.begin), use(root, kept ? p.ops.size() : when.end - 1);
  }
  for (const Slot slot : {Slot::Work, Slot::Step, Slot::Output}) {
    if (failed) return too_large(p, *failed);
    uint64_t& end = p.slot_bytes[size_t(slot)];
    uint16_t value = 0;
    const auto now = place_slot(p, lives, slot, slot == Slot::Work ? 0 : end, value);
    if (!now) failed = value;
    else end = *now;
  }
  if (failed) return too_large(p, *failed);
  for (size_t v = 0; v < p.values.size(); v++)
    if (p.info[v].root != v) {
      p.values[v].offset = p.values[p.info[v].root].offset;
      p.values[v].slot = p.values[p.info[v].root].slot;
    }
  return Done{};
}

}  // namespace

Status plan_work(Program& p, uint64_t alignment, Kept keep, std::span<const PassedValue> passed) {
  return plan(p, alignment, keep, passed, {});
}
Status plan_work(Program& p, uint64_t alignment, const Joined& joined) {
  return plan(p, alignment, Kept::Needed, {}, joined.together);
}

}  // namespace gimbal
