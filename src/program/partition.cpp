#include "program/partition.h"

#include <algorithm>

#include "base/format.h"
#include "device/values.h"
#include "program/passes.h"

namespace gimbal {
namespace {

constexpr size_t kNobody = SIZE_MAX;

// The stages that use a value.
struct Use {
  size_t computed = kNobody, last_read = 0;
  std::vector<bool> by;  // stage by stage: an op there reads or writes it
};

std::vector<Use> uses(const Program& p, std::span<const size_t> stage, size_t stages) {
  std::vector<Use> all(p.values.size());
  for (Use& u : all) u.by.resize(stages);
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    for (uint16_t out : outputs_of(op))
      if (p.values[out].slot != uint32_t(Slot::Cache)) all[p.info[out].root].computed = stage[i];
    for (uint16_t in : inputs_of(op)) {
      Use& u = all[p.info[in].root];
      u.last_read = stage[i], u.by[stage[i]] = true;
    }
  }
  auto unused = [](const Use& u) { return std::find(u.by.begin(), u.by.end(), true) == u.by.end(); };
  for (size_t w = 0; w < p.weights.size(); w++) {
    Use& u = all[p.weights[w]];
    if (!unused(u) || p.ops.empty()) continue;
    const auto op = std::lower_bound(p.layer.begin(), p.layer.end(), p.weight_layer[w]) - p.layer.begin();
    u.by[stage[std::min(size_t(op), p.ops.size() - 1)]] = true;
  }
  // Other unused values belong to the first stage.
  for (Use& u : all)
    if (unused(u)) u.by[0] = true;
  return all;
}

// One stage under construction, which copies values from the whole program.
class StageBuilder {
 public:
  StageBuilder(const Program& whole, const std::vector<Use>& uses, const Device& device, size_t stage,
               StageProgram& result)
      : whole_(whole), uses_(uses), device_(device), stage_(stage), result_(result), p_(result.program) {
    result.values.assign(whole.values.size(), kNoValue);
    for (size_t v = 0; v < whole.values.size(); v++)
      if (whole.values[v].slot == uint32_t(Slot::Step) && whole.info[v].root == v)
        take(uint16_t(v), Slot::Step);
    result.step_bytes = p_.slot_bytes[size_t(Slot::Step)];
    for (size_t w = 0; w < whole.weights.size(); w++)
      if (uses[whole.weights[w]].by[stage]) take_weight(w);
    for (const StateValue& s : whole.states)
      if (uses[s.value].by[stage]) take_state(s);
  }

  void add(gimbal_op op, int layer) {
    for (int k = 0; k < op.inputs; k++) op.in[k] = input(op.in[k]);
    for (int k = 0; k < op.outputs; k++) op.out[k] = output(op.out[k]);
    p_.ops.push_back(op);
    p_.layer.push_back(layer);
  }

  const std::optional<Error>& error() const { return error_; }
  // Sets the locations of transferred values in the earlier stages.
  void connect(const std::vector<StageBuilder>& builders) {
    for (size_t i = 0; i < transferred_.size(); i++) {
      Transfer& t = result_.in[i];
      const StageBuilder& from = builders[t.from];
      t.read_offset = from.p_.values[from.here(transferred_[i])].offset;
    }
  }

 private:
  uint16_t& here(uint16_t whole) const { return result_.values[whole]; }

  uint16_t take(uint16_t from, Slot slot, uint64_t bytes, gimbal_layout layout) {
    const auto extent = gimbal_extent(whole_.values[from].extent);
    const ValueInfo& info = whole_.info[from];
    return here(from) = p_.add(info.name, info.shape, slot, bytes, layout, extent, error_).id;
  }
  // With the layout of the whole program.
  uint16_t take(uint16_t from, Slot slot) {
    return take(from, slot, whole_.values[from].bytes, gimbal_layout(whole_.values[from].layout));
  }

  void take_weight(size_t weight) {
    const uint16_t from = whole_.weights[weight];
    const Shape& shape = whole_.info[from].shape;
    const auto packed = shape.rank > 1 ? device_.packed_bytes(shape) : std::nullopt;
    p_.weights.push_back(take(from, Slot::Weights, packed.value_or(uint64_t(shape.bytes())),
                              packed ? GIMBAL_PACKED : GIMBAL_DENSE));
    p_.sources.push_back(whole_.sources[weight]), p_.weight_layer.push_back(whole_.weight_layer[weight]);
  }
  void take_state(StateValue s) {
    s.value = take(s.value, Slot::Cache, state_bytes(device_, whole_.info[s.value].shape, s.layout),
                   gimbal_layout(whole_.values[s.value].layout));
    p_.states.push_back(s);
  }

  // The output of an op: an existing state, or a new value.
  uint16_t output(uint16_t out) {
    if (here(out) != kNoValue) return here(out);
    const bool leaves = whole_.values[out].slot == uint32_t(Slot::Output) || uses_[out].last_read > stage_;
    return take(out, leaves ? Slot::Output : Slot::Work);
  }

  uint16_t input(uint16_t from) {
    const uint16_t root = whole_.info[from].root;
    if (here(from) != kNoValue) return here(from);
    if (here(root) == kNoValue) transfer(root);
    if (from == root) return here(root);
    return here(from) = p_.add_view({here(root)}, whole_.info[from].shape, error_).id;
  }

  void transfer(uint16_t root) {
    const gimbal_value& v = whole_.values[root];
    const auto rows = int32_t(rows_of(v));
    const uint16_t id = take(root, Slot::Step);
    transferred_.push_back(root);
    result_.in.push_back({uses_[root].computed, 0, p_.values[id].offset,
                          v.bytes / uint64_t(std::max(1, rows)), rows, gimbal_extent(v.extent)});
  }

  const Program& whole_;
  const std::vector<Use>& uses_;
  const Device& device_;
  const size_t stage_;
  StageProgram& result_;
  Program& p_;
  std::vector<uint16_t> transferred_;  // the values of the whole program in `in`
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<StageProgram>> partition(const Program& whole, std::span<const size_t> stage_of_op,
                                            std::span<const Device* const> devices) {
  size_t now = 0;
  for (size_t stage : stage_of_op) {
    if (stage < now || stage >= devices.size())
      return Error{Code::Failed, "the stages of a program are not in the order of its ops", ""};
    now = stage;
  }
  std::vector<StageProgram> stages(devices.size());
  const std::vector<Use> used = uses(whole, stage_of_op, devices.size());
  // State for later steps has one location: a stage on another device could not read it.
  for (const StateValue& state : whole.states)
    if (const auto& by = used[state.value].by; std::count(by.begin(), by.end(), true) > 1)
      return Error{Code::Unsupported,
                   format("'{}' is shared by layers that would be on several devices; they must be on one",
                          whole.info[state.value].name),
                   ""};
  std::vector<StageBuilder> builders;
  builders.reserve(devices.size());
  for (size_t s = 0; s < devices.size(); s++) builders.emplace_back(whole, used, *devices[s], s, stages[s]);
  for (size_t i = 0; i < whole.ops.size(); i++) builders[stage_of_op[i]].add(whole.ops[i], whole.layer[i]);
  for (size_t s = 0; s < stages.size(); s++) {
    if (const auto& e = builders[s].error())
      return Error{e->code, format("the part of the model for device {}: {}", devices[s]->id(), e->message),
                   ""};
    if (auto ok = plan_work(stages[s].program, kAlignment); !ok) return ok.error();
    builders[s].connect(builders);
  }
  return stages;
}

}  // namespace gimbal
