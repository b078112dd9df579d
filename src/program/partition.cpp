#include "program/partition.h"

#include <algorithm>

#include "base/format.h"
#include "device/values.h"

namespace gimbal {
namespace {

// The stages that read or write each value, by root.
std::vector<std::vector<bool>> users(const Program& p, const StageOf& stage, size_t stages) {
  std::vector<std::vector<bool>> by(p.values.size(), std::vector<bool>(stages));
  for (size_t i = 0; i < p.ops.size(); i++)
    for (uint16_t in : inputs_of(p.ops[i])) by[p.info[in].root][stage.ops[i]] = true;
  auto unread = [&](uint16_t v) { return std::find(by[v].begin(), by[v].end(), true) == by[v].end(); };
  for (size_t w = 0; w < p.weights.size(); w++) {
    if (!unread(p.weights[w]) || p.ops.empty()) continue;
    const auto op = std::lower_bound(p.layer.begin(), p.layer.end(), p.weight_layer[w]) - p.layer.begin();
    by[p.weights[w]][stage.unread_weights.empty() ? stage.ops[std::min(size_t(op), p.ops.size() - 1)]
                                                  : stage.unread_weights[w]] = true;
  }
  // Other unused values belong to the first stage.
  for (size_t v = 0; v < p.values.size(); v++)
    if (unread(uint16_t(v))) by[v][0] = true;
  return by;
}

constexpr size_t kNone = SIZE_MAX;

// The op that computes each value, by root; kNone: it is no activation.
std::vector<size_t> makers(const Program& p) {
  std::vector<size_t> all(p.values.size(), kNone);
  for (size_t i = 0; i < p.ops.size(); i++)
    for (uint16_t out : outputs_of(p.ops[i]))
      if (p.values[out].slot != uint32_t(Slot::Cache)) all[p.info[out].root] = i;
  return all;
}

// A whole program to be divided.
struct Divided {
  const Program& whole;
  const StageOf& stage;
  std::vector<std::vector<bool>> users;
  std::vector<size_t> makers;
};

// One stage under construction, which copies values from the whole program.
class StageBuilder {
 public:
  StageBuilder(const Divided& d, const Device& device, size_t stage, StageProgram& result)
      : d_(d), whole_(d.whole), device_(device), stage_(stage), result_(result), p_(result.program) {
    result.values.assign(whole_.values.size(), kNoValue);
    for (size_t v = 0; v < whole_.values.size(); v++)
      if (whole_.values[v].slot == uint32_t(Slot::Step) && whole_.info[v].root == v)
        take(uint16_t(v), Slot::Step);
    result.step_bytes = p_.slot_bytes[size_t(Slot::Step)];
    for (size_t w = 0; w < whole_.weights.size(); w++)
      if (d.users[whole_.weights[w]][stage]) take_weight(w);
    for (const StateValue& s : whole_.states)
      if (d.users[s.value][stage]) take_state(s);
  }

  void begin_part(size_t turn) { result_.parts.push_back({{p_.ops.size(), p_.ops.size()}, turn}); }

  // The op with this index in the whole program.
  void add(size_t index, std::vector<StageBuilder>& all) { add(index, index, all); }

  const std::optional<Error>& error() const { return error_; }

  Status plan(Kept keep) {
    result_.output_bytes = p_.slot_bytes[size_t(Slot::Output)];
    return plan_work(p_, kAlignment, keep, passed_);
  }
  // Sets the locations of transferred values. After plan() of all stages.
  void connect(const std::vector<StageBuilder>& all) {
    size_t i = 0;
    for (StagePart& part : result_.parts)
      for (Transfer& t : part.in) {
        const StageBuilder& from = all[t.from];
        t.read_offset = from.p_.values[from.here(transferred_[i++])].offset;
        t.write_offset = p_.values[t.value].offset;
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

  // `reader`: the op for which this one is computed here.
  void add(size_t index, size_t reader, std::vector<StageBuilder>& all) {
    gimbal_op op = whole_.ops[index];
    for (int k = 0; k < op.inputs; k++) op.in[k] = input(op.in[k], reader, all);
    for (int k = 0; k < op.outputs; k++) op.out[k] = output(op.out[k]);
    p_.ops.push_back(op);
    p_.layer.push_back(whole_.layer[reader]), result_.from.push_back(reader);
    result_.parts.back().ops.end = p_.ops.size();
  }

  // The output of an op: an existing state, or a new value.
  uint16_t output(uint16_t out) {
    if (here(out) != kNoValue) return here(out);
    return take(out, whole_.values[out].slot == uint32_t(Slot::Output) ? Slot::Output : Slot::Work);
  }

  uint16_t input(uint16_t from, size_t reader, std::vector<StageBuilder>& all) {
    const uint16_t root = whole_.info[from].root;
    if (here(from) != kNoValue) return here(from);
    if (here(root) == kNoValue) {
      const size_t maker = d_.makers[root];
      if (OpKind(whole_.ops[maker].kind) == OpKind::Quantize) add(maker, reader, all);
      else transfer(root, all[d_.stage.ops[maker]]);
    }
    if (from == root) return here(root);
    return here(from) = p_.add_view({here(root)}, whole_.info[from].shape, error_).id;
  }

  void transfer(uint16_t root, StageBuilder& from) {
    const gimbal_value& v = whole_.values[root];
    const auto rows = int32_t(rows_of(v));
    const uint16_t id = take(root, Slot::Work), there = from.here(root);
    StagePart& part = result_.parts.back();
    move(id, Slot::Step, part.ops.begin);
    // It stays there until this part's turn. The model's outputs have places of their own.
    if (v.slot != uint32_t(Slot::Output)) from.move(there, Slot::Output, from.p_.ops.size() - 1);
    transferred_.push_back(root);
    part.in.push_back(
        {from.stage_, id, 0, 0, v.bytes / uint64_t(std::max(1, rows)), rows, gimbal_extent(v.extent)});
  }
  // An activation gets its place in this slot, and is in use at this op.
  void move(uint16_t value, Slot slot, size_t op) {
    p_.values[value].slot = uint32_t(slot);
    passed_.push_back({value, op});
  }

  const Divided& d_;
  const Program& whole_;
  const Device& device_;
  const size_t stage_;
  StageProgram& result_;
  Program& p_;
  std::vector<uint16_t> transferred_;  // the values of the whole program in the parts' `in`
  std::vector<PassedValue> passed_;
  std::optional<Error> error_;
};

Status check(const Divided& d, std::span<const Device* const> devices) {
  // State for later steps has one location: a stage on another device could not read it.
  for (const StateValue& state : d.whole.states)
    if (const auto& by = d.users[state.value]; std::count(by.begin(), by.end(), true) > 1)
      return Error{Code::Unsupported,
                   format("'{}' is shared by layers that would be on several devices; they must be on one",
                          d.whole.info[state.value].name),
                   ""};
  for (size_t v = 0; v < d.whole.values.size(); v++)
    if (d.whole.values[v].slot == uint32_t(Slot::Output) && d.whole.info[v].root == v &&
        d.makers[v] != kNone && d.stage.ops[d.makers[v]] + 1 != devices.size())
      return Error{Code::Unsupported,
                   format("'{}' is a result of the model, which must be computed on {}, with the last layers",
                          d.whole.info[v].name, devices.back()->id()),
                   ""};
  return Done{};
}

}  // namespace

Result<std::vector<StageProgram>> partition(const Program& whole, const StageOf& stage,
                                            std::span<const Device* const> devices, bool by_layer,
                                            Kept keep) {
  if (std::any_of(stage.ops.begin(), stage.ops.end(), [&](size_t s) { return s >= devices.size(); }))
    return Error{Code::Failed, "an op of a program has no stage", ""};
  const Divided divided{whole, stage, users(whole, stage, devices.size()), makers(whole)};
  if (auto ok = check(divided, devices); !ok) return ok.error();
  std::vector<StageProgram> stages(devices.size());
  std::vector<StageBuilder> builders;
  builders.reserve(devices.size());
  for (size_t s = 0; s < devices.size(); s++) builders.emplace_back(divided, *devices[s], s, stages[s]);
  for (size_t i = 0, turn = 0; i < whole.ops.size(); i++) {
    const bool goes_on =
        i > 0 && stage.ops[i] == stage.ops[i - 1] && !(by_layer && whole.layer[i] != whole.layer[i - 1]);
    if (!goes_on) builders[stage.ops[i]].begin_part(turn++);
    builders[stage.ops[i]].add(i, builders);
  }
  for (size_t s = 0; s < stages.size(); s++) {
    if (const auto& e = builders[s].error())
      return Error{e->code, format("the part of the model for device {}: {}", devices[s]->id(), e->message),
                   ""};
    if (auto ok = builders[s].plan(keep); !ok) return ok.error();
  }
  for (StageBuilder& b : builders) b.connect(builders);
  return stages;
}

std::vector<StagePart> parts_of(const Program& p, bool by_layer) {
  std::vector<StagePart> all = {{{0, p.ops.size()}}};
  for (size_t i = 1; by_layer && i < p.ops.size(); i++)
    if (p.layer[i] != p.layer[i - 1]) all.back().ops.end = i, all.push_back({{i, p.ops.size()}, all.size()});
  return all;
}

}  // namespace gimbal
