#include "program/program.h"

#include <algorithm>

#include "base/format.h"
#include "device/device.h"
#include "device/values.h"
#include "program/lifetimes.h"

namespace gimbal {
namespace {

Shape with_rows(const ValueInfo& info, const gimbal_value& v, gimbal_step step) {
  Shape s = info.shape;
  if (v.extent == GIMBAL_STEP_ROWS) s.last() = step.rows;
  if (v.extent == GIMBAL_OUT_ROWS) s.last() = step.out_rows;
  return s;
}

}  // namespace

const char* name_of(Slot s) {
  static constexpr const char* kNames[kSlots] = {"weights", "kv cache", "step data", "activations", "output"};
  return kNames[size_t(s)];
}

// Ops refer to values by 16-bit indices; the largest is reserved for "none" (program/partition.cpp).
bool Program::has_room(std::optional<Error>& failed) const {
  if (values.size() < UINT16_MAX) return true;
  if (!failed) failed = Error{Code::Unsupported, "a program of more than 65,535 values", ""};
  return false;
}

Value Program::add(const std::string& name, const Shape& shape, Slot slot, uint64_t bytes,
                   gimbal_layout layout, gimbal_extent extent, std::optional<Error>& failed) {
  if (!has_room(failed)) return {};
  gimbal_value v{};
  set_shape(v, shape);
  v.slot = uint32_t(slot);
  v.layout = uint8_t(layout), v.extent = uint8_t(extent), v.bytes = bytes;
  const Value id{uint16_t(values.size())};
  values.push_back(v);
  info.push_back({name, shape, id.id});
  if (slot != Slot::Work) move_to(slot, id, failed);
  return id;
}

Value Program::add_view(Value of, const Shape& shape, std::optional<Error>& failed) {
  if (!has_room(failed)) return of;
  gimbal_value v = values[of.id];
  set_shape(v, shape);
  values.push_back(v);
  info.push_back({info[of.id].name, shape, info[of.id].root});
  return {uint16_t(values.size() - 1)};
}

void Program::move_to(Slot slot, Value of, std::optional<Error>& failed) {
  gimbal_value& v = values[of.id];
  uint64_t& end = slot_bytes[size_t(slot)];
  v.slot = uint32_t(slot), v.offset = end;
  if (const auto next = slot_end(end, v.bytes, kAlignment)) end = *next;
  else if (!failed)
    failed = Error{Code::OutOfMemory,
                   format("'{}' ({}) needs {}: more than any device can have", info[of.id].name,
                          to_string(info[of.id].shape), human_bytes(v.bytes)),
                   ""};
}

std::vector<Shape> Program::input_shapes(const gimbal_op& op, gimbal_step step) const {
  std::vector<Shape> s;
  for (uint16_t in : inputs_of(op)) s.push_back(with_rows(info[in], values[in], step));
  return s;
}

Shape Program::output_shape(const gimbal_op& op, gimbal_step step) const {
  return with_rows(info[op.out[0]], values[op.out[0]], step);
}

uint64_t state_bytes(const Device& device, const Shape& s, StateLayout layout) {
  if (layout == StateLayout::Dense) return uint64_t(s.bytes());
  return device.cache_bytes(s.type, layout == StateLayout::Keys, s.dim[0], s.dim[1], s.dim[2], s.dim[3]);
}

}  // namespace gimbal
