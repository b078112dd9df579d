// Records a program. Model code reads like a paper: x = p.add(x, p.linear(w.out, p.attention(...))).
// Shapes are checked op by op; the first error is kept and returned by finish(), so model code needs no
// checks.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

class ProgramBuilder {
 public:
  // `device` determines the layout of weights and caches. `rows`: the most tokens per step; `out_rows`: the
  // most rows per step that need logits.
  ProgramBuilder(const Device& device, int rows, int out_rows);

  // ---- weights: the same name, rows and size give the same value, so tied weights are stored once
  // `name`: the tensor's. A matrix [columns, rows] is packed if the device has a layout for it.
  Value matrix(const std::string& name, Shape shape, const WeightSource& source = {});
  Value vector(const std::string& name, int size, const WeightSource& source = {});  // f32
  // ---- inputs of each step
  Value rows_input(const std::string& name, DType type,
                   int width = 0);  // width 0: one value per row, else [width, rows]
  // Likewise, of the rows with results.
  Value out_rows_input(const std::string& name, DType type = DType::I32, int width = 0);
  // The output of another program, in Slot::Output.
  Value input(const std::string& name, Shape shape, Slot slot = Slot::Step,
              gimbal_extent extent = GIMBAL_ALL_ROWS);
  // State for later steps; the last dimension of the shape counts pages of this pool.
  Value state(const std::string& name, const Shape& shape, StateLayout layout, int pool);
  Value cache(const std::string& name, DType type, bool is_key, int head_dim, int heads, int pages,
              int pool = 0);

  const Shape& shape(Value v) const { return program_.info[v.id].shape; }

  // ---- ops; defined in ops/defs/<op>.cpp
  // Any op; its output is named `what`, or after the op.
  Value record(OpKind kind, const std::vector<Value>& in, const OpParams& params = {},
               const std::string& what = "");

  Value embed(Value table, Value tokens) { return record(OpKind::Embed, {table, tokens}); }
  Value rms_norm(Value x, Value weight, float epsilon) {
    return record(OpKind::RmsNorm, {x, weight}, {{epsilon}, {}}, "norm");
  }
  // Quantizes x first if the weight's format requires it.
  Value linear(Value weight, Value x, std::optional<Value> bias = {});
  // `first`: the first value of a head that is rotated.
  Value rope(Value x, Value table, RopePairs pairs, int first = 0) {
    return record(OpKind::Rope, {x, table}, {{}, {int64_t(pairs), first}});
  }
  Value hadamard(Value x, int run) { return record(OpKind::Hadamard, {x}, {{}, {run}}); }
  // A bias requires a weight.
  Value norm(Value x, NormKind kind, float epsilon, std::optional<Value> weight = {},
             std::optional<Value> bias = {});
  // Element-wise ops of one value; `f`: their parameter, if they have one.
  Value map(OpKind kind, Value x, float f = 0) { return record(kind, {x}, {{f}, {}}); }
  Value mul(Value a, Value b) { return record(OpKind::Mul, {a, b}); }
  Value slice(Value x, int first, int n) { return record(OpKind::Slice, {x}, {{}, {first, n}}); }
  Value concat(Value a, Value b) { return record(OpKind::Concat, {a, b}); }
  void cache_write(Value cache, bool is_key, Value x, Value position, Value sequence, Value pages) {
    record(OpKind::CacheWrite, {cache, x, position, sequence, pages}, {{}, {is_key}});
  }
  struct Attend {
    float scale;
    int window = 0;            // visible positions, including the row's own; 0: all up to its own
    float cap = 0, alibi = 0;  // 0: none
    // i32[2, rows], replaces the window; f32[heads], only with `seen`.
    std::optional<Value> seen{}, sinks{};
    // In place of sinks, only with `seen`: f32[(2 * distances + 1) * heads].
    std::optional<Value> biases{};
    int distances = 0;
    // In place of `seen`, f32[n, rows]: added to the scores of positions.
    std::optional<Value> added{};
  };
  Value attention(Value q, Value keys, Value values, Value position, Value sequence, Value pages,
                  const Attend& how);
  // f32[n, rows]: 0 for the k positions of each row that an indexer prefers, kHidden for the others;
  // `positions` n: a multiple of 64. `weights` f32[h, rows].
  Value chosen_positions(Value q, Value keys, Value weights, Value position, Value sequence, Value pages,
                         int positions, int k);
  // ---- mixtures of experts: ops/defs/experts.cpp
  struct Routing {
    int k;  // experts per row
    Gating gating = Gating::Softmax;
    bool normalised = false;
    int groups = 0, groups_used = 0;  // 0: none
    float scale = 0;                  // of the weights; 0: 1
  };
  // f32[2k, rows]: weights, then expert indices.
  Value route(Value logits, const Routing& how, std::optional<Value> bias = {});
  // `weights` holds the matrices of all experts, n rows each. x: [k, rows], or [k, slots, rows]. Without
  // routes, slot s uses matrix s. Quantizes as linear() does. Returns [n, slots, rows].
  Value expert_linear(Value weights, int n, Value x, std::optional<Value> routes = {},
                      std::optional<Value> bias = {});
  Value combine(Value x, Value routes, std::optional<Value> scales = {});

  Value swiglu(Value gate, Value up) { return record(OpKind::SwiGlu, {gate, up}); }
  Value squared_relu_glu(Value gate, Value up) { return record(OpKind::SquaredReluGlu, {gate, up}); }
  Value scale(Value x, float factor) { return record(OpKind::Scale, {x}, {{factor}, {}}); }
  Value add(Value a, Value b) { return record(OpKind::Add, {a, b}); }
  // a + b * s with a factor s for each row, f32[1, rows]; a where it is 0.
  Value add_scaled(Value a, Value b, Value s) { return record(OpKind::AddScaled, {a, b, s}); }
  Value select_rows(Value x, Value rows) { return record(OpKind::SelectRows, {x, rows}); }
  Value top_k(Value x, int k) { return record(OpKind::TopK, {x}, {{}, {k}}); }
  // Views with other dimensions; the last dimension remains the rows.
  Value split_heads(Value x, int head_dim);  // [heads * hd, rows] -> [hd, heads, rows]
  Value join_heads(Value x);                 // and back

  // Later values are named "<scope>.<what>".
  void scope(std::string name) { scope_ = std::move(name); }
  // Later ops belong to this layer: programs are divided between layers (program/partition.h).
  void layer(int index) { layer_ = index; }
  // Marks the value that the host reads after a step.
  void output(Value v);
  // Later values of this slot are placed at or after this offset: next to guards, or after another program's.
  void continue_at(Slot slot, uint64_t offset) {
    program_.slot_bytes[size_t(slot)] = align_up(offset, kAlignment);
  }

  // Plans the activation memory. Errors: the first op whose shapes do not fit.
  Result<Program> finish() &&;

 private:
  Value quantized(Value x, DType weights);
  Value weight(const std::string& name, const WeightSource& source, const Shape& shape);
  Value place(const std::string& name, Shape shape, Slot slot, uint64_t bytes, gimbal_layout layout,
              gimbal_extent extent);

  const Device& device_;
  int rows_, out_rows_;
  Program program_;
  std::map<std::string, Value> named_;
  std::map<std::pair<uint16_t, DType>, Value> quantized_;  // all matmuls of a value share its quantization
  std::string scope_;
  int layer_ = kBeforeLayers;
  std::optional<Error> error_;
};

}  // namespace gimbal
