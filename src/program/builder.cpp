#include "program/builder.h"

#include "base/format.h"
#include "device/values.h"
#include "ops/shapes.h"
#include "program/memory.h"

namespace gimbal {

ProgramBuilder::ProgramBuilder(const Device& device, int rows, int out_rows)
    : device_(device), rows_(rows), out_rows_(out_rows) {}

Value ProgramBuilder::place(const std::string& name, Shape shape, Slot slot, uint64_t bytes,
                            gimbal_layout layout, gimbal_extent extent) {
  return program_.add(name, shape, slot, bytes, layout, extent, error_);
}

Value ProgramBuilder::matrix(const std::string& name, Shape shape) {
  auto [it, fresh] = named_.try_emplace(name);
  if (fresh) {
    auto packed = device_.packed_bytes(shape);
    it->second = place(name, shape, Slot::Weights, packed.value_or(uint64_t(shape.bytes())),
                       packed ? GIMBAL_PACKED : GIMBAL_DENSE, GIMBAL_ALL_ROWS);
    program_.weights.push_back(it->second.id);
  }
  return it->second;
}

Value ProgramBuilder::vector(const std::string& name, int size) {
  auto [it, fresh] = named_.try_emplace(name);
  if (fresh) {
    Shape s(DType::F32, {size});
    it->second = place(name, s, Slot::Weights, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_ALL_ROWS);
    program_.weights.push_back(it->second.id);
  }
  return it->second;
}

Value ProgramBuilder::rows_input(const std::string& name, DType type, int width) {
  Shape s = width ? Shape(type, {width, rows_}) : Shape(type, {rows_});
  return place(name, s, Slot::Step, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_STEP_ROWS);
}
Value ProgramBuilder::out_rows_input(const std::string& name) {
  Shape s(DType::I32, {out_rows_});
  return place(name, s, Slot::Step, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_OUT_ROWS);
}
Value ProgramBuilder::input(const std::string& name, Shape s, Slot slot) {
  return place(name, s, slot, uint64_t(s.bytes()), GIMBAL_DENSE, GIMBAL_ALL_ROWS);
}

Value ProgramBuilder::cache(const std::string& name, DType type, bool is_key, int head_dim, int heads,
                            int pages) {
  Shape s(type, {head_dim, heads, kPagePositions, pages});
  return place(name, s, Slot::Cache,
               device_.cache_bytes(type, is_key, head_dim, heads, kPagePositions, pages), GIMBAL_CACHE,
               GIMBAL_ALL_ROWS);
}

Value ProgramBuilder::record(OpKind kind, const std::vector<Value>& in, const OpParams& params,
                             const std::string& what) {
  gimbal_op op{};
  op.kind = uint16_t(kind);
  std::vector<Shape> shapes;
  for (Value v : in) shapes.push_back(shape(v));
  auto out = gimbal::output_shape(kind, params, shapes);
  if (!out) {
    if (!error_)
      error_ = Error{out.error().code,
                     format("{}: {}", scope_.empty() ? what : scope_ + "." + what, out.error().message), ""};
    return in.front();
  }
  // As many as output_shape() accepts: at most GIMBAL_MAX_INPUTS.
  for (Value v : in) op.in[op.inputs++] = v.id;
  set_params(op, params);
  op.outputs = 1;
  if (kind == OpKind::CacheWrite) {
    op.out[0] = op.in[0];
  } else {
    // The output has as many rows as the input that brings the rows: x of a matmul, tokens of an embedding,
    // else the first.
    bool second = kind == OpKind::MatMul || kind == OpKind::Embed || kind == OpKind::SelectRows;
    auto extent = gimbal_extent(program_.values[op.in[second ? 1 : 0]].extent);
    op.out[0] = place(scope_.empty() ? what : scope_ + "." + what, *out, Slot::Work, uint64_t(out->bytes()),
                      GIMBAL_DENSE, extent)
                    .id;
  }
  program_.ops.push_back(op);
  program_.layer.push_back(layer_);
  return {op.out[0]};
}

static OpParams with_f(double f) { return OpParams{{f}, {}}; }
static OpParams with_i(int64_t i) { return OpParams{{}, {i}}; }

Value ProgramBuilder::embed(Value table, Value tokens) {
  return record(OpKind::Embed, {table, tokens}, {}, "embed");
}
Value ProgramBuilder::rms_norm(Value x, Value w, float epsilon) {
  return record(OpKind::RmsNorm, {x, w}, with_f(epsilon), "norm");
}

Value ProgramBuilder::linear(Value w, Value x, std::optional<Value> bias) {
  DType type = activation_type(shape(w).type);
  if (type != DType::F32) {
    auto [it, fresh] = quantized_.try_emplace({x.id, type});
    if (fresh) it->second = record(OpKind::Quantize, {x}, with_i(int32_t(type)), "quantize");
    x = it->second;
  }
  // Named after the weight: "blk.0.attn_q.weight" computes "blk.0.attn_q".
  std::string what = program_.info[w.id].name;
  if (auto dot = what.rfind(".weight"); dot != std::string::npos) what.resize(dot);
  std::string scope = std::exchange(scope_, "");
  Value y = bias ? record(OpKind::MatMul, {w, x, *bias}, {}, what) : record(OpKind::MatMul, {w, x}, {}, what);
  scope_ = std::move(scope);
  return y;
}

Value ProgramBuilder::rope(Value x, Value table, RopePairs pairs) {
  return record(OpKind::Rope, {x, table}, with_i(int32_t(pairs)), "rope");
}

void ProgramBuilder::cache_write(Value cache, bool is_key, Value x, Value position, Value sequence,
                                 Value pages) {
  record(OpKind::CacheWrite, {cache, x, position, sequence, pages}, with_i(is_key), "cache_write");
}

Value ProgramBuilder::attention(Value q, Value keys, Value values, Value position, Value sequence,
                                Value pages, float scale, int window) {
  OpParams p = with_f(scale);
  p.i[1] = window;
  return record(OpKind::Attention, {q, keys, values, position, sequence, pages}, p, "attention");
}

Value ProgramBuilder::swiglu(Value gate, Value up) {
  return record(OpKind::SwiGlu, {gate, up}, {}, "swiglu");
}
Value ProgramBuilder::squared_relu_glu(Value gate, Value up) {
  return record(OpKind::SquaredReluGlu, {gate, up}, {}, "squared_relu_glu");
}
Value ProgramBuilder::scale(Value x, float factor) {
  return record(OpKind::Scale, {x}, with_f(factor), "scale");
}
Value ProgramBuilder::add(Value a, Value b) { return record(OpKind::Add, {a, b}, {}, "add"); }
Value ProgramBuilder::select_rows(Value x, Value rows) {
  return record(OpKind::SelectRows, {x, rows}, {}, "select_rows");
}

Value ProgramBuilder::top_k(Value x, int k) { return record(OpKind::TopK, {x}, with_i(k), "top_k"); }
Value ProgramBuilder::sort(Value x, SortOrder order) {
  return record(OpKind::Sort, {x}, with_i(int32_t(order)), "sort");
}
Value ProgramBuilder::argsort(Value x, SortOrder order) {
  return record(OpKind::ArgSort, {x}, with_i(int32_t(order)), "argsort");
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
  if (error_) return *error_;
  plan_work(program_, kAlignment);
  return std::move(program_);
}

}  // namespace gimbal
