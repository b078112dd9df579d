#include "crossval/reference_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "crossval/our_layers.h"
#include "ops/op_def.h"
#include "runtime/inputs.h"
#include "runtime/model_plan.h"
#include "tensor/quant.h"

namespace gimbal::crossval {
namespace {

using reference::Tensor;

constexpr double kRounding = 0x1p-24;               // of f32
constexpr double kHalf = 0x1p-11, kBrain = 0x1p-8;  // of f16 and bf16

Result<ModelPlan> plan_of(const ModelSource& file, const Device& host, int tokens, int context) {
  RunOptions options;
  options.context = std::max(context, tokens), options.batch = options.logit_rows = tokens;
  options.cache_type = DType::F32;
  return make_model_plan(file, host, options);
}

// Random numbers from -1 to 1, of a stream of its own for each run.
class Errors {
 public:
  explicit Errors(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  double next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return double(int64_t(state_)) * 0x1p-63;
  }

 private:
  uint64_t state_;
};

// The values of one run, by root.
struct Run {
  bool exact;
  Errors errors;
  std::vector<std::vector<double>> values;
  ModelValues out;
};

class Interpreter {
 public:
  Interpreter(const ModelPlan& plan, const ModelSource& file, int rows, const ReferenceSettings& settings)
      : plan_(plan),
        file_(file),
        bucket_(plan.stages[0].buckets[plan.bucket_for(rows)]),
        p_(bucket_.program),
        rows_(rows),
        settings_(settings),
        weight_(p_.values.size(), SIZE_MAX) {
    for (size_t w = 0; w < p_.weights.size(); w++) weight_[p_.weights[w]] = w;
  }

  Result<ReferenceRun> run(std::span<const int32_t> tokens) {
    for (int i = 0; i <= settings_.moved; i++)
      runs_.push_back({i == 0, Errors(uint64_t(i)), std::vector<std::vector<double>>(p_.values.size()), {}});
    fill_inputs(tokens);
    const std::vector<LayerValue> layers = layer_values(p_, plan_.config.width);
    size_t next = 0;
    for (size_t i = 0; i < p_.ops.size(); i++) {
      if (auto ok = compute(p_.ops[i]); !ok) return ok.error();
      while (next < layers.size() && layers[next].last_op <= i) keep(layers[next++]);
      if (settings_.progress && !settings_.progress(i + 1, p_.ops.size()))
        return Error{Code::Failed, "cancelled", ""};
    }
    const auto logits = bucket_.outputs[size_t(Output::Logits)];
    if (!logits) return Error{Code::Unsupported, "the model gives no logits", ""};
    ReferenceRun out;
    for (Run& r : runs_) {
      r.out.logits = {plan_.config.vocabulary, std::move(r.values[p_.info[logits->id].root])};
      (r.exact ? out.exact : out.moved.emplace_back()) = std::move(r.out);
    }
    return out;
  }

 private:
  // A shape as one text needs it: its pages, and no more rows than there are.
  Shape shape_of(uint16_t value) const {
    Shape s = p_.info[value].shape;
    for (const StateValue& state : p_.states)
      if (state.value == value) s.last() = pages(state.pool);
    return s;
  }
  int pages(size_t pool) const {
    return plan_.pools[pool].kind == StateKind::Recurrent ? 1 : (rows_ + kPagePositions - 1) / kPagePositions;
  }

  void fill_inputs(std::span<const int32_t> tokens) {
    std::vector<StepRow> rows;
    for (int i = 0; i < rows_; i++)
      rows.push_back({.token = tokens[size_t(i)],
                      .embedding = nullptr,
                      .position = i,
                      .sequence = 0,
                      .last = rows_ - 1,
                      .place = {i, i, i},
                      .adapters = plan_.adapters});
    for (const StepInput& in : bucket_.inputs) {
      const Shape& s = p_.info[in.value.id].shape;
      std::vector<std::byte> bytes(size_t(s.bytes()));
      const auto put = [&](size_t i, int32_t v) { std::memcpy(bytes.data() + 4 * i, &v, 4); };
      if (in.kind == StepInput::Kind::Rows)
        for (size_t i = 0; i < rows.size(); i++) in.fill(rows[i], bytes.data() + i * in.row_bytes);
      else if (in.kind == StepInput::Kind::Constant) in.fill(StepRow{}, bytes.data());
      else if (in.kind == StepInput::Kind::Wanted)
        for (int i = 0; i < rows_; i++) put(size_t(i), i);
      else
        for (int i = 0; i < plan_.pools[in.pool].table && i < pages(in.pool); i++) put(size_t(i), i);
      const Tensor t = reference::decode(s, bytes.data());
      for (Run& r : runs_) r.values[p_.info[in.value.id].root] = t.values;
    }
    for (const StateValue& state : p_.states)
      for (Run& r : runs_) r.values[state.value].assign(size_t(shape_of(state.value).count()), 0);
  }

  Result<Tensor> weight(uint16_t value) const {
    const WeightSource& from = p_.sources[weight_[value]];
    const Shape& s = p_.info[value].shape;
    const StoredTensor& t = file_.tensors()[from.tensor];
    const bool matrix = s.rank > 1;
    const uint64_t first =
        matrix ? uint64_t(from.expert * t.dim[1] + from.first_row) * uint64_t(row_bytes(t.type, s.dim[0]))
               : uint64_t(row_bytes(t.type, from.first_row));
    const int64_t n = s.count();
    const uint64_t bytes = uint64_t(row_bytes(t.type, s.dim[0])) * uint64_t(matrix ? s.dim[1] : 1),
                   tail = uint64_t(tensor_tail_bytes(t.type));
    if (!can_decode(t.type))
      return Error{Code::Unsupported, format("tensor '{}' has no reference decoder", t.name), ""};
    std::vector<std::byte> raw(bytes + tail);
    if (auto ok = file_.read(t, first, raw.data(), bytes); !ok) return ok.error();
    if (auto ok = file_.read(t, t.bytes - tail, raw.data() + bytes, tail); !ok) return ok.error();
    std::vector<float> floats(static_cast<size_t>(n));
    decode_tensor(t.type, raw.data(), n, floats.data());
    return Tensor{s, std::vector<double>(floats.begin(), floats.end())};
  }

  Status compute(const gimbal_op& op) {
    std::vector<std::optional<Tensor>> weights(op.inputs);
    for (uint32_t k = 0; k < op.inputs; k++)
      if (weight_[op.in[k]] != SIZE_MAX) {
        auto w = weight(op.in[k]);
        if (!w) return w.error();
        weights[k] = std::move(*w);
      }
    std::vector<std::thread> threads;
    for (size_t i = 1; i < runs_.size(); i++)
      threads.emplace_back([&, i] { compute(op, weights, runs_[i]); });
    compute(op, weights, runs_[0]);
    for (std::thread& t : threads) t.join();
    return Done{};
  }

  // One op of one run.
  void compute(const gimbal_op& op, const std::vector<std::optional<Tensor>>& weights, Run& r) const {
    const auto kind = OpKind(op.kind);
    const OpDef& meaning = def(kind);
    OpParams params;
    std::copy(std::begin(op.param.f), std::end(op.param.f), params.f);
    std::copy(std::begin(op.param.i), std::end(op.param.i), params.i);
    std::vector<Tensor> own(op.inputs);  // copies: values of the run
    std::vector<const Tensor*> in;
    std::vector<Shape> shapes;
    for (uint32_t k = 0; k < op.inputs; k++) {
      if (!weights[k]) own[k] = {shape_of(op.in[k]), r.values[p_.info[op.in[k]].root]};
      in.push_back(weights[k] ? &*weights[k] : &own[k]);
      shapes.push_back(in.back()->shape);
    }
    if (r.exact && settings_.watch) settings_.watch(p_, op, in);
    if (const auto [size, k] = r.exact ? std::pair(0.0, 0) : input_rounding(kind, params, shapes[0].type);
        size > 0)
      for (double& v : own[size_t(k)].values) v += v * size * r.errors.next();
    const int written = meaning.first(Role::Written), state = meaning.first(Role::State);
    Tensor out{shape_of(op.out[0]), {}};
    if (written >= 0) out.values = own[size_t(written)].values;
    else out.values.assign(size_t(out.shape.count()), 0);
    std::vector<double> magnitude, state_magnitude;
    Tensor held = state >= 0 ? own[size_t(state)] : Tensor{};
    reference::run(kind, params, in, out, rows_, r.exact ? nullptr : &magnitude, state >= 0 ? &held : nullptr,
                   r.exact || state < 0 ? nullptr : &state_magnitude);
    if (!r.exact) {
      const double size = rounding(kind, shapes);
      move(out.values, magnitude, size, r.errors);
      move(held.values, state_magnitude, size, r.errors);
      if (is_gelu(kind))
        for (double& v : out.values) v += v * kHalf * r.errors.next();
    }
    if (state >= 0) r.values[p_.info[op.out[1]].root] = std::move(held.values);
    r.values[p_.info[op.out[0]].root] = std::move(out.values);
  }

  static void move(std::vector<double>& values, const std::vector<double>& magnitude, double size,
                   Errors& errors) {
    for (size_t i = 0; i < magnitude.size(); i++)
      if (magnitude[i] > 0) values[i] += errors.next() * size * magnitude[i];
  }
  static bool is_gelu(OpKind k) { return k == OpKind::Gelu || k == OpKind::GeluGlu; }
  // How an implementation may round an input of the op: a relative error, and which input.
  std::pair<double, int> input_rounding(OpKind k, const OpParams& params, DType weights) const {
    if (is_gelu(k)) return {kHalf, 0};
    if (k == OpKind::CacheWrite && settings_.half_values && params.i[0] == 0) return {kHalf, 1};
    if (k != OpKind::MatMul && k != OpKind::ExpertMatMul) return {0, 0};
    return {weights == DType::F16 ? kHalf : weights == DType::BF16 ? kBrain : 0, 1};
  }
  // Relative to the magnitude of the terms.
  static double rounding(OpKind k, const std::vector<Shape>& in) {
    const double allowed = tolerance(k, in);
    return k == OpKind::Quantize ? allowed : std::sqrt(std::max(1.0, allowed / kRounding)) * kRounding;
  }

  void keep(const LayerValue& layer) {
    for (Run& r : runs_) {
      r.out.layers.push_back(layer.layer);
      r.out.layer.push_back({int(p_.info[layer.value].shape.dim[0]), r.values[layer.value]});
    }
  }

  const ModelPlan& plan_;
  const ModelSource& file_;
  const Bucket& bucket_;
  const Program& p_;
  const int rows_;
  const ReferenceSettings& settings_;
  std::vector<size_t> weight_;  // by value: index into Program::weights
  std::vector<Run> runs_;
};

}  // namespace

Result<ReferenceCost> reference_cost(const ModelSource& file, const Device& host) {
  auto plan = plan_of(file, host, 1, 0);
  if (!plan) return plan.error();
  const Program& p = plan->stages[0].buckets[0].program;
  ReferenceCost out;
  for (const gimbal_op& op : p.ops)
    out.operations +=
        cost(OpKind(op.kind), p.input_shapes(op, {1, 1}), p.output_shape(op, {1, 1})).operations;
  for (uint16_t w : p.weights)
    out.largest_bytes = std::max(out.largest_bytes, 12.0 * double(p.info[w].shape.count()));
  return out;
}

Result<ReferenceRun> run_reference(const ModelSource& file, const Device& host,
                                   std::span<const int32_t> tokens, const ReferenceSettings& settings) {
  auto plan = plan_of(file, host, int(tokens.size()), settings.context);
  if (!plan) return plan.error();
  if (auto ok = check_inputs(tokens, plan->config.vocabulary, 0); !ok) return ok.error();
  return Interpreter(*plan, file, int(tokens.size()), settings).run(tokens);
}

}  // namespace gimbal::crossval
