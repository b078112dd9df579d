#include "conformance/case_program.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "conformance/known_cases.h"
#include "device/values.h"
#include "ops/op_def.h"
#include "program/builder.h"

namespace gimbal {
namespace {

// Step inputs for the rows of all caches.
void fill_caches(ProgramBuilder& p, const Case& c, std::vector<Value>& in, CaseProgram& s) {
  const OpDef& op = def(c.kind);
  const Written written(c);
  if (written.position.empty()) return;
  const Shape each(DType::I32, {int32_t(written.position.size())});
  const Value position = p.input("position", each), sequence = p.input("sequence", each);
  s.written_position = position.id, s.written_sequence = sequence.id;
  bool keys = true;  // the first one
  for (size_t i = 0; i < in.size(); i++) {
    if (op.inputs[i].role != Role::Cache) continue;
    const Shape& rows = c.inputs[i].shape;
    const Value cache =
        p.cache(op.inputs[i].name, c.cache_type, keys, rows.dim[0], rows.dim[1], written.pages);
    p.cache_write(cache, keys, in[i], position, sequence, in[size_t(op.first(Role::Pages))]);
    in[i] = cache, keys = false;
  }
}

// Where an input lies in its memory, as the tensor library describes it (tensors/apply.cpp).
void place(const CaseInput& in, gimbal_value& v) {
  const int64_t size = info(in.shape.type).bytes;
  v.bytes = uint64_t(in.shape.bytes());
  if (in.stride.empty()) return;
  v.offset += uint64_t(in.offset * size);
  const std::vector<int64_t> places = places_of(in);
  bool dense = true;
  for (int i = 0; i < in.shape.rank; i++) dense &= v.dim[i] == 1 || in.stride[size_t(i)] == v.stride[i];
  if (dense) return;
  v.layout = GIMBAL_STRIDED;
  v.bytes = uint64_t((*std::max_element(places.begin(), places.end()) + 1 - in.offset) * size);
  std::fill(std::begin(v.stride), std::end(v.stride), 0);
  std::copy(in.stride.begin(), in.stride.end(), v.stride);
}

// Ops on whole values have no rows of a step and take views, which a recorded program does not have.
Result<CaseProgram> set_up_views(const Case& c) {
  CaseProgram s;
  Program& p = s.program;
  std::optional<Error> failed;
  std::vector<Shape> shapes;
  gimbal_op op{};
  op.kind = uint16_t(c.kind), op.outputs = 1;
  set_params(op, c.params);
  p.slot_bytes[size_t(Slot::Output)] = kGuard;
  for (const CaseInput& in : c.inputs) {
    const bool written = def(c.kind).inputs[shapes.size()].role == Role::Written;
    if (written) s.written = shapes.size();
    const Value v = p.add(format("input {}", shapes.size()), in.shape, written ? Slot::Output : Slot::Step,
                          in.dense.size(), GIMBAL_DENSE, GIMBAL_ALL_ROWS, failed);
    if (failed) return *failed;
    s.memory.push_back(p.values[v.id].offset);
    place(in, p.values[v.id]);
    op.in[op.inputs++] = v.id;
    s.inputs.push_back(v.id), shapes.push_back(in.shape);
  }
  const auto shape = output_shape(c.kind, c.params, shapes);
  if (!shape) return shape.error();
  s.out = s.written ? s.inputs[*s.written]
                    : p.add("out", *shape, Slot::Output, uint64_t(shape->bytes()), GIMBAL_DENSE,
                            GIMBAL_ALL_ROWS, failed)
                          .id;
  if (failed) return *failed;
  op.out[0] = s.out;
  p.ops.push_back(op), p.layer.push_back(0);
  s.step = {1, 1};
  return s;
}

}  // namespace

Result<CaseProgram> set_up(const Device& device, const Case& c, gimbal_extent extent) {
  if (def(c.kind).row_inputs() == 0) return set_up_views(c);
  CaseProgram s;
  ProgramBuilder p(device, c.capacity, c.capacity);
  p.continue_at(Slot::Output, kGuard);
  std::vector<Value> in;
  for (const CaseInput& i : c.inputs) {
    const std::string name = format("input {}", in.size());
    const Role role = def(c.kind).inputs[in.size()].role;
    in.push_back(role == Role::State    ? p.state(name, i.shape, StateLayout::Dense, 0)
                 : role != Role::Weight ? p.input(name, i.shape)
                 : i.shape.rank == 2    ? p.matrix(name, i.shape)
                                        : p.vector(name, i.shape.dim[0]));
    s.inputs.push_back(in.back().id);
    if (role == Role::State) s.state = in.back().id;
  }
  fill_caches(p, c, in, s);
  const Value out = p.record(c.kind, in, c.params, "out");
  p.output(out);
  auto program = std::move(p).finish();
  if (!program) return program.error();
  s.program = std::move(*program);
  s.out = out.id;
  for (uint16_t input : s.inputs) s.memory.push_back(s.program.values[input].offset);
  // The inputs have all rows of the capacity; the case sets the number of output rows to compute.
  s.program.values[s.out].extent = extent;
  s.step = extent == GIMBAL_STEP_ROWS ? gimbal_step{c.rows, c.capacity} : gimbal_step{c.capacity, c.rows};
  return s;
}

}  // namespace gimbal
