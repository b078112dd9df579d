#include "backends/cpu/schedule.h"

#include <algorithm>
#include <map>

#include "ops/op_def.h"

namespace gimbal::cpu {
namespace {

// The access of an op to one value: work item r touches its row r alone, or any part of it.
struct Access {
  const gimbal_value& value;
  bool writes, by_row;
};

// The bytes of its buffer that a value reaches, from the lowest element on: a strided one may go backwards.
struct ByteRange {
  uint64_t begin, end;
};
ByteRange bytes_of(const gimbal_value& v) {
  if (v.layout != GIMBAL_STRIDED) return {v.offset, v.offset + v.bytes};
  const auto width = int64_t(info(DType(v.dtype)).bytes);
  auto low = int64_t(v.offset), high = low + width;
  for (int i = 0; i < v.rank; i++) {
    const int64_t reach = (v.dim[i] - 1) * v.stride[i] * width;
    (reach < 0 ? low : high) += reach;
  }
  return {uint64_t(low), uint64_t(high)};
}

bool overlap(const gimbal_value& a, const gimbal_value& b) {
  const ByteRange x = bytes_of(a), y = bytes_of(b);
  return a.slot == b.slot && a.slot != GIMBAL_LOCAL && x.begin < y.end && y.begin < x.end;
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
      : p_(p), row_inputs_(row_inputs), first_of_parts_(cpu::first_of_parts(p)) {}

  enum Kind {
    None,   // any order will do
    ByRow,  // first before second, row by row: different rows have nothing to do with each other
    Whole,  // all of first before anything of second
  };

  Kind between(size_t first, size_t second) const {
    const bool fusable = same_group(first, second), one_row = fusable && capacity(rows(first)) == 1;
    Kind kind = None;
    for (int i = -p_.ops[first].outputs; i < p_.ops[first].inputs; i++)
      for (int k = -p_.ops[second].outputs; k < p_.ops[second].inputs; k++) {
        const Access a = access(first, i), b = access(second, k);
        if (!(a.writes || b.writes) || !overlap(a.value, b.value)) continue;
        if (!one_row && !(fusable && a.by_row && b.by_row && same_rows(a.value, b.value))) return Whole;
        kind = ByRow;
      }
    return kind;
  }

  bool by_row(size_t op) const { return row_inputs_[op] != 0; }
  bool single(size_t op) const { return by_row(op) && capacity(rows(op)) == 1; }
  uint32_t first_of_parts(size_t op) const { return first_of_parts_[op]; }
  // They may be computed one after the other for every row, or must be for every part.
  bool same_group(size_t a, size_t b) const {
    if (first_of_parts(a) == first_of_parts(b)) return true;
    return by_row(a) && by_row(b) && rows(a).extent == rows(b).extent &&
           capacity(rows(a)) == capacity(rows(b));
  }

 private:
  const gimbal_value& rows(size_t op) const { return value_of_rows(p_.ops[op], p_.values); }
  Access access(size_t op, int input) const {  // -1, -2: the outputs
    const gimbal_op& o = p_.ops[op];
    if (input >= 0) return {p_.values[o.in[input]], false, (row_inputs_[op] >> input & 1) != 0};
    const gimbal_value& out = p_.values[o.out[-1 - input]];
    return {out, true, by_row(op) && out.layout == GIMBAL_DENSE};
  }

  const gimbal_program& p_;
  const std::vector<uint32_t>& row_inputs_;
  const std::vector<uint32_t> first_of_parts_;
};

}  // namespace

const gimbal_value& value_of_rows(const gimbal_op& op, const gimbal_value* values) {
  const OpDef& d = def(OpKind(op.kind));
  const int rows = d.has(Role::Written) ? d.rows_input() : -1;  // of ops on tensors, none
  return values[rows >= 0 ? op.in[rows] : op.out[0]];
}

int Schedule::shared_levels() const {
  return int(std::count_if(levels.begin(), levels.end(), [](const Level& l) { return !l.single; }));
}

std::vector<uint32_t> first_of_parts(const gimbal_program& p) {
  std::vector<uint32_t> first(p.n_ops);
  std::map<uint64_t, size_t> last_read;  // by the value's number
  for (size_t op = 0; op < p.n_ops; op++)
    for (int i = 0; i < p.ops[op].inputs; i++)
      if (const gimbal_value& v = p.values[p.ops[op].in[i]]; v.slot == GIMBAL_LOCAL) last_read[v.offset] = op;
  for (size_t op = 0, needed = 0; op < p.n_ops; op++) {  // needed: the last op that reads one of those so far
    first[op] = op > 0 && needed >= op ? first[op - 1] : uint32_t(op);
    const gimbal_value& out = p.values[p.ops[op].out[0]];
    if (out.slot == GIMBAL_LOCAL) needed = std::max(needed, last_read[out.offset]);
  }
  return first;
}

bool overwritten_later(const gimbal_program& p, size_t op) {
  const gimbal_op& reader = p.ops[op];
  for (size_t later = op + 1; later < p.n_ops; later++)
    for (int i = 0; i < reader.inputs; i++)
      for (int k = 0; k < p.ops[later].outputs; k++)
        if (overlap(p.values[reader.in[i]], p.values[p.ops[later].out[k]])) return true;
  return false;
}

Schedule make_schedule(const gimbal_program& p, const std::vector<uint32_t>& row_inputs) {
  const Dependences dependences(p, row_inputs);
  // Every op goes into the first level that the ops before it allow.
  std::vector<size_t> level(p.n_ops), last(p.n_ops);  // last: the last level of the ops up to here
  size_t levels = 0;
  for (size_t begin = 0, end; begin < p.n_ops; begin = end) {  // ops of parts have one level
    size_t first = 0;
    for (end = begin; end < p.n_ops && dependences.first_of_parts(end) == begin; end++)
      for (size_t before = begin; before-- > 0 && last[before] >= first;) {
        const auto kind = dependences.between(before, end);
        if (kind != Dependences::None) first = std::max(first, level[before] + (kind == Dependences::Whole));
      }
    levels = std::max(levels, first + 1);
    for (size_t op = begin; op < end; op++) level[op] = first, last[op] = levels - 1;
  }

  Schedule s;
  std::vector<std::vector<size_t>> members(levels);
  for (size_t op = 0; op < p.n_ops; op++) members[level[op]].push_back(op);
  for (const auto& ops : members) {
    // Ops by row of the same rows are one group, in the program's order, whether they depend or not.
    std::vector<std::vector<size_t>> groups;
    for (size_t op : ops) {
      auto g = std::find_if(groups.begin(), groups.end(),
                            [&](auto& group) { return dependences.same_group(group[0], op); });
      if (g == groups.end()) groups.push_back({op});
      else g->push_back(op);
    }
    const auto begin = uint32_t(s.groups.size());
    for (const auto& group : groups) {
      const auto first = uint32_t(s.order.size());
      for (size_t op : group) s.order.push_back(uint32_t(op));
      s.groups.push_back(
          {first, uint32_t(s.order.size()), group.size() > 1 && !dependences.by_row(group[0])});
    }
    s.levels.push_back(
        {begin, uint32_t(s.groups.size()), groups.size() == 1 && dependences.single(groups[0][0])});
  }
  return s;
}

}  // namespace gimbal::cpu
