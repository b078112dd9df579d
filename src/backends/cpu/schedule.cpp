#include "backends/cpu/schedule.h"

#include <algorithm>

#include "ops/op.h"

namespace gimbal::cpu {
namespace {

// What an op does with one value: unit r touches its row r alone, or any part of it.
struct Access {
  const gimbal_value& value;
  bool writes, by_row;
};

bool overlap(const gimbal_value& a, const gimbal_value& b) {
  return a.slot == b.slot && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Row r of one lies where row r of the other does, so that different rows have nothing in common.
bool same_rows(const gimbal_value& a, const gimbal_value& b) {
  const auto rows_a = uint64_t(capacity(a)), rows_b = uint64_t(capacity(b));
  return a.offset == b.offset && a.bytes % rows_a == 0 && b.bytes % rows_b == 0 &&
         a.bytes / rows_a == b.bytes / rows_b;
}

class Dependences {
 public:
  Dependences(const gimbal_program& p, const std::vector<uint32_t>& row_inputs)
      : p_(p), row_inputs_(row_inputs) {}

  enum Kind {
    None,   // any order will do
    ByRow,  // first before second, row by row: different rows have nothing to do with each other
    Whole,  // all of first before anything of second
  };

  Kind between(size_t first, size_t second) const {
    const bool chainable = same_chain(first, second), one_row = chainable && capacity(rows(first)) == 1;
    Kind kind = None;
    for (int i = -1; i < p_.ops[first].inputs; i++)
      for (int k = -1; k < p_.ops[second].inputs; k++) {
        const Access a = access(first, i), b = access(second, k);
        if (!(a.writes || b.writes) || !overlap(a.value, b.value)) continue;
        if (!one_row && !(chainable && a.by_row && b.by_row && same_rows(a.value, b.value))) return Whole;
        kind = ByRow;
      }
    return kind;
  }

  bool by_row(size_t op) const { return row_inputs_[op] != 0; }
  bool single(size_t op) const { return by_row(op) && capacity(rows(op)) == 1; }
  // They may be done one after the other for every row.
  bool same_chain(size_t a, size_t b) const {
    return by_row(a) && by_row(b) && rows(a).extent == rows(b).extent &&
           capacity(rows(a)) == capacity(rows(b));
  }

 private:
  const gimbal_value& rows(size_t op) const { return value_of_rows(p_.ops[op], p_.values); }
  Access access(size_t op, int input) const {  // -1: the output
    const gimbal_op& o = p_.ops[op];
    if (input >= 0) return {p_.values[o.in[input]], false, (row_inputs_[op] >> input & 1) != 0};
    const gimbal_value& out = p_.values[o.out];
    return {out, true, by_row(op) && out.layout == GIMBAL_DENSE};
  }

  const gimbal_program& p_;
  const std::vector<uint32_t>& row_inputs_;
};

}  // namespace

const gimbal_value& value_of_rows(const gimbal_op& op, const gimbal_value* values) {
  return values[OpKind(op.kind) == OpKind::CacheWrite ? op.in[1] : op.out];
}

int Schedule::shared_phases() const {
  return int(std::count_if(phases.begin(), phases.end(), [](const Phase& p) { return !p.single; }));
}

Schedule make_schedule(const gimbal_program& p, const std::vector<uint32_t>& row_inputs) {
  const Dependences dependences(p, row_inputs);
  // Every op goes into the first phase that the ops before it allow.
  std::vector<size_t> phase(p.n_ops), last(p.n_ops);  // last: the last phase of the ops up to here
  size_t phases = 0;
  for (size_t op = 0; op < p.n_ops; op++) {
    size_t first = 0;
    for (size_t before = op; before-- > 0 && last[before] >= first;) {
      const auto kind = dependences.between(before, op);
      if (kind != Dependences::None) first = std::max(first, phase[before] + (kind == Dependences::Whole));
    }
    phase[op] = first;
    phases = std::max(phases, first + 1);
    last[op] = phases - 1;
  }

  Schedule s;
  std::vector<std::vector<size_t>> members(phases);
  for (size_t op = 0; op < p.n_ops; op++) members[phase[op]].push_back(op);
  for (const auto& ops : members) {
    // Ops by row of the same rows are one chain, in the program's order, whether they depend or not.
    std::vector<std::vector<size_t>> chains;
    for (size_t op : ops) {
      auto c = std::find_if(chains.begin(), chains.end(),
                            [&](auto& chain) { return dependences.same_chain(chain[0], op); });
      if (c == chains.end()) chains.push_back({op});
      else c->push_back(op);
    }
    const auto begin = uint32_t(s.chains.size());
    for (const auto& chain : chains) {
      const auto first = uint32_t(s.order.size());
      for (size_t op : chain) s.order.push_back(uint32_t(op));
      s.chains.push_back({first, uint32_t(s.order.size())});
    }
    s.phases.push_back(
        {begin, uint32_t(s.chains.size()), chains.size() == 1 && dependences.single(chains[0][0])});
  }
  return s;
}

}  // namespace gimbal::cpu
