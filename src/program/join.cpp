#include <algorithm>

#include "base/format.h"
#include "device/device.h"
#include "device/values.h"
#include "ops/op_def.h"
#include "program/join.h"

namespace gimbal {
namespace {

int64_t elements(const gimbal_value& v) { return shape_of(v).count(); }

// The uses of a memory, by the root of its values.
struct ElementUses {
  size_t written = SIZE_MAX, last = 0;  // ops
  int writes = 0, reads = 0;
  size_t other = SIZE_MAX;  // an op that reads it in another order, or a part of it
};

class Joining {
 public:
  Joining(Program& p, const Device& d) : p_(p), device_(d), uses_(p.values.size()), run_(p.ops.size()) {
    for (size_t i = 0; i < p.ops.size(); i++) {
      for (uint16_t out : outputs_of(p.ops[i])) {
        ElementUses& u = uses_[p.info[out].root];
        u.writes++, u.last = i, u.written = std::min(u.written, i);
        if (!whole(out)) u.other = std::min(u.other, i);
      }
      for (uint16_t in : inputs_of(p.ops[i])) {
        ElementUses& u = uses_[p.info[in].root];
        u.reads++, u.last = i;
        if (!whole(in)) u.other = std::min(u.other, i);
      }
    }
    for (size_t i = 0; i < p.ops.size(); i++) run_[i] = i > 0 && continues(i) ? run_[i - 1] : i;
  }

  Joined join() {
    Joined all{{}, std::vector<std::string>(p_.ops.size())};
    std::vector<size_t> end(p_.ops.size());  // of the ops that need an op's local result
    uint64_t locals = 0;
    for (size_t i = 0; i < p_.ops.size(); i++) {
      end[i] = i + 1;
      if (!by_element(i)) continue;
      const uint16_t root = p_.info[p_.ops[i].out[0]].root;
      const std::string against = why_in_memory(i);
      if (against.empty()) {
        end[i] = uses_[root].last + 1;
        set_local(root, locals++ * kAlignment);
        all.why[i] =
            format("its result takes no memory: operations {} to {} are computed together, part by part", i,
                   uses_[root].last);
      } else {
        all.why[i] = "its result goes to memory: " + against;
      }
    }
    for (size_t begin = 0, next; begin < p_.ops.size(); begin = next) {
      next = end[begin];
      for (size_t i = begin + 1; i < next; i++) next = std::max(next, end[i]);
      all.together.insert(all.together.end(), next - begin, {begin, next});
    }
    return all;
  }

 private:
  bool by_element(size_t op) const {
    return (device_.kernel(p_.ops[op].kernel).params & GIMBAL_BY_ELEMENT) != 0;
  }
  // All elements of the memory in its order.
  bool whole(uint16_t value) const {
    const gimbal_value &v = p_.values[value], &root = p_.values[p_.info[value].root];
    return v.layout == GIMBAL_DENSE && root.layout == GIMBAL_DENSE && v.dtype == root.dtype &&
           v.bytes == root.bytes;
  }
  // Whether an op may be computed part by part with those before it: it reads of their results only the
  // elements at its place.
  bool continues(size_t op) const {
    const gimbal_op &o = p_.ops[op], &before = p_.ops[op - 1];
    if (!by_element(op) || !by_element(op - 1) ||
        elements(p_.values[o.out[0]]) != elements(p_.values[before.out[0]]))
      return false;
    const auto in = inputs_of(o);
    return std::all_of(in.begin(), in.end(), [&](uint16_t value) {
      const ElementUses& u = uses_[p_.info[value].root];
      return u.writes == 0 || u.written < run_[op - 1] || whole(value);
    });
  }
  // Why the result of an op by element needs memory; empty: it does not.
  std::string why_in_memory(size_t op) const {
    const uint16_t root = p_.info[p_.ops[op].out[0]].root;
    const ElementUses& u = uses_[root];
    if (p_.values[root].slot != uint32_t(Slot::Work)) return "it is a result of the function";
    if (u.reads == 0) return "nothing reads it";
    if (u.writes > 1) return "it is written more than once";
    if (u.other != SIZE_MAX)
      return format("operation {} reads it in another order, or a part of it", u.other);
    if (run_[op] == run_[u.last]) return "";
    for (size_t i = op + 1; i <= u.last; i++)
      if (!by_element(i))
        return format("operation {} {}, and {} is not computed element by element", i,
                      i == u.last ? "reads it" : "stands between", info(OpKind(p_.ops[i].kind)).name);
    return format(
        "operation {} computes another number of elements, or reads earlier results in another order",
        run_[u.last]);
  }
  void set_local(uint16_t root, uint64_t number) {
    for (size_t v = 0; v < p_.values.size(); v++)
      if (p_.info[v].root == root) p_.values[v].slot = GIMBAL_LOCAL, p_.values[v].offset = number;
  }

  Program& p_;
  const Device& device_;
  std::vector<ElementUses> uses_;  // by root
  std::vector<size_t> run_;        // of each op: the first of those that may be computed together
};

}  // namespace

Joined join_by_element(Program& p, const Device& d) { return Joining(p, d).join(); }

}  // namespace gimbal
