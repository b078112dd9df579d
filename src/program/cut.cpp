#include "program/cut.h"

#include <algorithm>

#include "base/format.h"
#include "device/values.h"
#include "program/memory.h"

namespace gimbal {
namespace {

constexpr uint16_t kAbsent = UINT16_MAX;
constexpr size_t kNobody = SIZE_MAX;

// Who computes a value, and who reads it last.
struct Use {
  size_t computed = kNobody, last_read = 0;
};

std::vector<Use> uses(const Program& p, std::span<const size_t> part) {
  std::vector<Use> all(p.values.size());
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    for (uint16_t out : outputs_of(op))
      if (p.values[out].slot != uint32_t(Slot::Cache)) all[p.info[out].root].computed = part[i];
    for (uint16_t in : inputs_of(op)) all[p.info[in].root].last_read = part[i];
  }
  return all;
}

// One part under construction: values are taken over from the whole program as the ops need them.
class PartBuilder {
 public:
  PartBuilder(const Program& whole, const std::vector<Use>& uses, const Device& device, size_t part,
              std::vector<CutPart>& parts)
      : whole_(whole), uses_(uses), device_(device), part_(part), parts_(parts), p_(parts[part].program) {
    ids_.assign(whole.values.size(), kAbsent);
    for (size_t v = 0; v < whole.values.size(); v++)
      if (whole.values[v].slot == uint32_t(Slot::Step) && whole.info[v].root == v)
        take(uint16_t(v), Slot::Step);
    parts[part].step_bytes = p_.slot_bytes[size_t(Slot::Step)];
  }

  void add(gimbal_op op, int layer) {
    for (int k = 0; k < op.inputs; k++) op.in[k] = input(op, k);
    for (int k = 0; k < op.outputs; k++) op.out[k] = output(op.out[k]);
    p_.ops.push_back(op);
    p_.layer.push_back(layer);
  }

  const std::optional<Error>& error() const { return error_; }
  // Tells where the earlier parts leave what this one is given.
  void connect(const std::vector<PartBuilder>& builders) {
    for (size_t i = 0; i < handed_.size(); i++) {
      HandOver& h = parts_[part_].in[i];
      const PartBuilder& from = builders[h.from];
      h.read_offset = from.p_.values[from.ids_[handed_[i]]].offset;
    }
  }

 private:
  uint16_t take(uint16_t from, Slot slot, uint64_t bytes, gimbal_layout layout) {
    const auto extent = gimbal_extent(whole_.values[from].extent);
    const ValueInfo& info = whole_.info[from];
    return ids_[from] = p_.add(info.name, info.shape, slot, bytes, layout, extent, error_).id;
  }
  // As it lies in the whole program.
  uint16_t take(uint16_t from, Slot slot) {
    return take(from, slot, whole_.values[from].bytes, gimbal_layout(whole_.values[from].layout));
  }

  // What an op writes: a cache, which its input named before, or something new.
  uint16_t output(uint16_t out) {
    if (ids_[out] != kAbsent) return ids_[out];
    const bool leaves = whole_.values[out].slot == uint32_t(Slot::Output) || uses_[out].last_read > part_;
    return take(out, leaves ? Slot::Output : Slot::Work);
  }

  uint16_t input(const gimbal_op& op, int k) {
    const uint16_t from = op.in[k], root = whole_.info[from].root;
    if (ids_[from] != kAbsent) return ids_[from];
    if (ids_[root] == kAbsent) root_input(op, root);
    if (from == root) return ids_[root];
    return ids_[from] = p_.add_view({ids_[root]}, whole_.info[from].shape, error_).id;
  }

  void root_input(const gimbal_op& op, uint16_t root) {
    const gimbal_value& v = whole_.values[root];
    const Shape& shape = whole_.info[root].shape;
    if (v.slot == uint32_t(Slot::Weights)) {
      const auto packed = shape.rank > 1 ? device_.packed_bytes(shape) : std::nullopt;
      p_.weights.push_back(take(root, Slot::Weights, packed.value_or(uint64_t(shape.bytes())),
                                packed ? GIMBAL_PACKED : GIMBAL_DENSE));
    } else if (v.slot == uint32_t(Slot::Cache)) {
      // The first op that meets a cache writes it, and says whether it holds keys.
      take(root, Slot::Cache,
           device_.cache_bytes(shape.type, op.param.i[0] != 0, shape.dim[0], shape.dim[1], shape.dim[2],
                               shape.dim[3]),
           GIMBAL_CACHE);
    } else {
      hand_over(root);
    }
  }

  void hand_over(uint16_t root) {
    const gimbal_value& v = whole_.values[root];
    const auto rows = int32_t(rows_of(v));
    const uint16_t id = take(root, Slot::Step);
    handed_.push_back(root);
    parts_[part_].in.push_back({uses_[root].computed, 0, p_.values[id].offset,
                                v.bytes / uint64_t(std::max(1, rows)), rows, gimbal_extent(v.extent)});
  }

  const Program& whole_;
  const std::vector<Use>& uses_;
  const Device& device_;
  const size_t part_;
  std::vector<CutPart>& parts_;
  Program& p_;
  std::vector<uint16_t> ids_;     // of the whole program's values in this part
  std::vector<uint16_t> handed_;  // the whole program's values that `in` speaks of
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<CutPart>> cut(const Program& whole, std::span<const size_t> part_of_op,
                                 std::span<const Device* const> devices) {
  std::vector<CutPart> parts(devices.size());
  const std::vector<Use> used = uses(whole, part_of_op);
  std::vector<PartBuilder> builders;
  builders.reserve(devices.size());
  for (size_t p = 0; p < devices.size(); p++) builders.emplace_back(whole, used, *devices[p], p, parts);
  size_t now = 0;
  for (size_t i = 0; i < whole.ops.size(); i++) {
    if (part_of_op[i] < now || part_of_op[i] >= devices.size())
      return Error{Code::Failed, "the parts of a program are not in the order of its ops", ""};
    now = part_of_op[i];
    builders[now].add(whole.ops[i], whole.layer[i]);
  }
  for (size_t p = 0; p < parts.size(); p++) {
    if (const auto& e = builders[p].error())
      return Error{e->code, format("the part of the model for device {}: {}", devices[p]->id(), e->message),
                   ""};
    plan_work(parts[p].program, kAlignment);
    builders[p].connect(builders);
  }
  return parts;
}

}  // namespace gimbal
