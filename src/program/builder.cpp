#include "program/builder.h"

#include "base/format.h"
#include "device/values.h"
#include "ops/op_def.h"
#include "program/passes.h"

namespace gimbal {

ProgramBuilder::ProgramBuilder(const Device& device, int rows, int out_rows)
    : device_(device), rows_(rows), out_rows_(out_rows) {}

Value ProgramBuilder::place(const std::string& name, Shape shape, Slot slot, uint64_t bytes,
                            gimbal_layout layout, gimbal_extent extent) {
  return program_.add(name, shape, slot, bytes, layout, extent, error_);
}

// A weight's name: the tensor, and the part of it unless it is the whole.
static std::string name_of(std::string name, const WeightSource& s, int64_t rows) {
  if (s.expert) name += format("[expert {}]", s.expert);
  if (s.first_row) name += format("[{} to {}]", s.first_row, s.first_row + rows - 1);
  return name;
}

Value ProgramBuilder::weight(const std::string& name, const WeightSource& source, const Shape& shape) {
  const bool matrix = shape.rank > 1;
  auto [it, fresh] =
      named_.try_emplace(format("{} {} {} {}", name, source.expert, source.first_row, to_string(shape)));
  if (fresh) {
    const auto packed = matrix ? device_.packed_bytes(shape) : std::nullopt;
    it->second = place(name_of(name, source, shape.dim[shape.rank - 1]), shape, Slot::Weights,
                       packed.value_or(uint64_t(shape.bytes())), packed ? GIMBAL_PACKED : GIMBAL_DENSE,
                       GIMBAL_ALL_ROWS);
    program_.weights.push_back(it->second.id);
    program_.sources.push_back(source), program_.weight_layer.push_back(layer_);
  }
  return it->second;
}

Value ProgramBuilder::matrix(const std::string& name, Shape shape, const WeightSource& source) {
  return weight(name, source, shape);
}
Value ProgramBuilder::vector(const std::string& name, int size, const WeightSource& source) {
  return weight(name, source, Shape(DType::F32, {size}));
}

Value ProgramBuilder::rows_input(const std::string& name, DType type, int width) {
  Shape s = width ? Shape(type, {width, rows_}) : Shape(type, {rows_});
  return place(name, s, Slot::Step, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_STEP_ROWS);
}
Value ProgramBuilder::out_rows_input(const std::string& name, DType type, int width) {
  Shape s = width ? Shape(type, {width, out_rows_}) : Shape(type, {out_rows_});
  return place(name, s, Slot::Step, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_OUT_ROWS);
}
Value ProgramBuilder::input(const std::string& name, Shape s, Slot slot, gimbal_extent extent) {
  return place(name, s, slot, uint64_t(s.bytes()), GIMBAL_DENSE, extent);
}

Value ProgramBuilder::state(const std::string& name, const Shape& s, StateLayout layout, int pool) {
  const Value v = place(name, s, Slot::Cache, state_bytes(device_, s, layout),
                        layout == StateLayout::Dense ? GIMBAL_DENSE : GIMBAL_CACHE, GIMBAL_ALL_ROWS);
  program_.states.push_back({v.id, uint16_t(pool), layout});
  return v;
}

Value ProgramBuilder::cache(const std::string& name, DType type, bool is_key, int head_dim, int heads,
                            int pages, int pool) {
  return state(name, Shape(type, {head_dim, heads, kPagePositions, pages}),
               is_key ? StateLayout::Keys : StateLayout::Values, pool);
}

Value ProgramBuilder::record(OpKind kind, const std::vector<Value>& in, const OpParams& params,
                             const std::string& what) {
  const std::string own = what.empty() ? info(kind).name : what,
                    name = scope_.empty() ? own : scope_ + "." + own;
  gimbal_op op{};
  op.kind = uint16_t(kind);
  std::vector<Shape> shapes;
  for (Value v : in) shapes.push_back(shape(v));
  auto out = gimbal::output_shape(kind, params, shapes);
  if (!out) {
    if (!error_) error_ = Error{out.error().code, format("{}: {}", name, out.error().message), ""};
    return in.front();
  }
  // Checked by output_shape(): at most GIMBAL_MAX_INPUTS.
  for (Value v : in) op.in[op.inputs++] = v.id;
  set_params(op, params);
  op.outputs = 1;
  const OpDef& meaning = def(kind);
  if (const int written = meaning.first(Role::Written); written >= 0) {
    op.out[0] = op.in[written];
  } else {
    const auto extent = gimbal_extent(program_.values[op.in[meaning.rows_input()]].extent);
    op.out[0] = place(name, *out, Slot::Work, uint64_t(out->bytes()), GIMBAL_DENSE, extent).id;
  }
  if (const int state = meaning.first(Role::State); state >= 0) op.out[op.outputs++] = op.in[state];
  program_.ops.push_back(op);
  program_.layer.push_back(layer_);
  return {op.out[0]};
}

// x in the format that a product with such weights takes.
Value ProgramBuilder::quantized(Value x, DType weights) {
  const DType type = activation_type(weights);
  if (type == DType::F32) return x;
  auto [it, fresh] = quantized_.try_emplace({x.id, type});
  if (fresh) it->second = record(OpKind::Quantize, {x}, {{}, {int64_t(type)}});
  return it->second;
}

Value ProgramBuilder::route(Value logits, const Routing& how, std::optional<Value> bias) {
  std::vector<Value> in = {logits};
  if (bias) in.push_back(*bias);
  return record(OpKind::Route, in,
                {{how.scale}, {how.k, int64_t(how.gating), how.normalised, how.groups, how.groups_used}});
}

Value ProgramBuilder::expert_linear(Value weights, int n, Value x, std::optional<Value> routes,
                                    std::optional<Value> bias) {
  const int width = int(shape(x).dim[0]);
  x = split_heads(quantized(join_heads(x), shape(weights).type), width);
  std::vector<Value> in = {weights, x};
  if (routes) in.push_back(*routes);
  if (bias) in.push_back(*bias);
  return record(OpKind::ExpertMatMul, in, {{}, {n}});
}

Value ProgramBuilder::combine(Value x, Value routes, std::optional<Value> scales) {
  std::vector<Value> in = {x, routes};
  if (scales) in.push_back(*scales);
  return record(OpKind::Combine, in);
}

Value ProgramBuilder::linear(Value w, Value x, std::optional<Value> bias) {
  x = quantized(x, shape(w).type);
  // Named after the weight: "blk.0.attn_q.weight" computes "blk.0.attn_q".
  std::string what = program_.info[w.id].name;
  if (auto dot = what.rfind(".weight"); dot != std::string::npos) what.resize(dot);
  std::string scope = std::exchange(scope_, "");
  std::vector<Value> in = {w, x};
  if (bias) in.push_back(*bias);
  const Value y = record(OpKind::MatMul, in, {}, what);
  scope_ = std::move(scope);
  return y;
}

Value ProgramBuilder::norm(Value x, NormKind kind, float epsilon, std::optional<Value> weight,
                           std::optional<Value> bias) {
  std::vector<Value> in = {x};
  if (weight) in.push_back(*weight);
  if (bias) in.push_back(*bias);
  return record(OpKind::Norm, in, {{epsilon}, {int64_t(kind)}});
}

Value ProgramBuilder::attention(Value q, Value keys, Value values, Value position, Value sequence,
                                Value pages, const Attend& how) {
  std::vector<Value> in = {q, keys, values, position, sequence, pages};
  if (how.added) in.push_back(*how.added);
  else if (how.seen) in.push_back(*how.seen);
  if (how.sinks) in.push_back(*how.sinks);
  if (how.biases) in.push_back(*how.biases);
  const int64_t width = shape(values).dim[0];
  return record(OpKind::Attention, in,
                {{how.scale, how.cap, how.alibi},
                 {0, how.window, width == shape(q).dim[0] ? 0 : width, how.distances, how.added ? 1 : 0}});
}

Value ProgramBuilder::chosen_positions(Value q, Value keys, Value weights, Value position, Value sequence,
                                       Value pages, int positions, int k) {
  const Value scores =
      record(OpKind::IndexScores, {q, keys, weights, position, sequence, pages}, {{}, {positions}});
  return record(OpKind::KeepTop, {scores, top_k(scores, k)});
}

Value ProgramBuilder::split_heads(Value x, int head_dim) {
  const Shape& s = shape(x);
  if (error_) return x;
  if (s.rank != 2 || head_dim < 1 || s.dim[0] % head_dim) {
    error_ = Error{Code::Unsupported,
                   format("{}: rows of {} cannot be split into heads of {}", program_.info[x.id].name,
                          s.dim[0], head_dim),
                   ""};
    return x;
  }
  return program_.add_view(x, Shape(s.type, {head_dim, s.dim[0] / head_dim, s.dim[1]}), error_);
}

Value ProgramBuilder::join_heads(Value x) {
  const Shape& s = shape(x);
  if (error_ || s.rank != 3) return x;
  return program_.add_view(x, Shape(s.type, {s.dim[0] * s.dim[1], s.dim[2]}), error_);
}

void ProgramBuilder::output(Value v) {
  program_.move_to(Slot::Output, {program_.info[v.id].root}, error_);  // views follow their root
}

Result<Program> ProgramBuilder::finish() && {
  if (!error_ && rows_ > 1) compute_wanted_rows_only(program_, error_);
  if (error_) return *error_;
  if (auto ok = plan_work(program_, kAlignment); !ok) return ok.error();
  return std::move(program_);
}

}  // namespace gimbal
