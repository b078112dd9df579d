#include "calibration/importance_run.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/text.h"
#include "device/values.h"

namespace gimbal {
namespace {

std::optional<ProductInput> input_of(const Program& p, const gimbal_op& op, const WeightSource& weight,
                                     const std::vector<const gimbal_op*>& made_by) {
  const bool experts = OpKind(op.kind) == OpKind::ExpertMatMul;
  if ((!experts && OpKind(op.kind) != OpKind::MatMul) || weight.tensor == WeightSource::kNone ||
      weight.first_row != 0)
    return std::nullopt;
  uint16_t values = op.in[1];
  const int64_t columns = p.values[values].dim[0];
  // A quantized value has the places of the value that it was made of.
  if (const gimbal_op* made = made_by[p.info[values].root]; made && OpKind(made->kind) == OpKind::Quantize)
    values = made->in[0];
  ProductInput in{
      weight.tensor, weight.expert, values, columns, row_values(p.values[values]) / columns, 1, {}};
  if (!experts) return in;
  in.matrices = p.values[op.in[0]].dim[1] / op.param.i[0];
  if (op.inputs > 2) in.routes = op.in[2];
  return in;
}

}  // namespace

std::vector<ProductInput> product_inputs(const Program& p) {
  std::vector<const gimbal_op*> made_by(p.values.size());  // by root
  std::vector<const WeightSource*> source(p.values.size());
  for (size_t w = 0; w < p.weights.size(); w++) source[p.weights[w]] = &p.sources[w];
  std::vector<ProductInput> all;
  for (const gimbal_op& op : p.ops) {
    if (op.inputs > 1 && source[op.in[0]])
      if (auto in = input_of(p, op, *source[op.in[0]], made_by)) all.push_back(*in);
    made_by[p.info[op.out[0]].root] = &op;
  }
  return all;
}

namespace {

// Kept activations and the logits of all rows take memory for each row of a batch.
constexpr int kMostRows = 64;

// Adds rows in the order of the text, each number to a sum of its own: no order depends on batches.
class InputAdder {
 public:
  InputAdder(const Model& model, const ModelSource& file, ImportanceSums& to) : file_(file), to_(to) {
    for (const Stage& stage : model.plan().stages)
      for (const Bucket& bucket : stage.buckets)
        inputs_[&bucket] = {&bucket.program, product_inputs(bucket.program)};
    plan_ = &model.plan();
  }

  Status add(size_t stage, size_t bucket, gimbal_step step, const Steps::ReadValue& read) {
    const auto& [program, inputs] = inputs_.at(&plan_->stages[stage].buckets[bucket]);
    uint16_t in_memory = UINT16_MAX;
    for (const ProductInput& in : inputs) {
      const int64_t rows = rows_in_step(program->values[in.values], step);
      values_.resize(size_t(rows * in.slots * in.columns));
      // Several products have the same input.
      if (in.values != in_memory)
        if (auto ok = read(in.values, std::as_writable_bytes(std::span(values_))); !ok) return ok;
      in_memory = in.values;
      if (in.routes) {
        routes_.resize(size_t(rows * row_values(program->values[*in.routes])));
        if (auto ok = read(*in.routes, std::as_writable_bytes(std::span(routes_))); !ok) return ok;
      }
      add(in, rows);
    }
    return Done{};
  }

 private:
  void add(const ProductInput& in, int64_t rows) {
    const StoredTensor& t = file_.tensors()[in.tensor];
    // Adapters are no tensors of the model's file.
    if (t.name.find(".lora_") != t.name.npos) return;
    const int64_t matrices = t.dim[2] * t.dim[3];
    InputSums& sums = to_.of(t.name, size_t(in.columns), size_t(matrices));
    const int64_t used = in.routes         ? int64_t(routes_.size()) / rows / 2
                         : in.matrices > 1 ? in.matrices
                                           : in.slots;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t s = 0; s < used; s++) {
        const int64_t matrix = in.matrix + (in.routes ? int64_t(routes_[size_t((2 * r + 1) * used + s)])
                                            : in.matrices > 1 ? s
                                                              : 0);
        add_row(sums, size_t(matrices > 1 ? matrix : 0),
                &values_[size_t((r * in.slots + s % in.slots) * in.columns)], size_t(in.columns));
      }
  }

  // Squares of floats are exact in double, so the order of rows alone decides the bits.
  static void add_row(InputSums& sums, size_t matrix, const float* values, size_t columns) {
    double* to = &sums.squares[matrix * columns];
    for (size_t i = 0; i < columns; i++) to[i] += double(values[i]) * double(values[i]);
    sums.rows[matrix]++;
  }

  struct Inputs {
    const Program* program;
    std::vector<ProductInput> all;
  };
  const ModelSource& file_;
  ImportanceSums& to_;
  const ModelPlan* plan_;
  std::map<const Bucket*, Inputs> inputs_;
  std::vector<float> values_, routes_;
};

Status check_finite(const ImportanceSums& sums) {
  for (const auto& [name, of] : sums.tensors())
    for (double square : of.squares)
      if (!(square - square == 0))
        return Error{Code::Failed, format("an input of {} is not finite", quoted(name)),
                     "compute the importance matrix with a model in f16, bf16 or f32"};
  return Done{};
}

}  // namespace

RunOptions importance_options(RunOptions o, int window) {
  o.context = window;
  o.batch = o.logit_rows = std::min({o.batch, window, kMostRows});
  o.sequences = 1, o.cache_positions = 0, o.drafts = 0;
  o.keep_inputs = true;
  return o;
}

Result<ImportanceRun> add_importance(Model& model, const ModelSource& file, const ScoredWindows& text,
                                     ImportanceSums& to, const std::function<bool(int windows)>& progress) {
  const RunOptions& o = model.plan().options;
  if (!o.keep_inputs || o.logit_rows < o.batch)
    return Error{Code::Usage, "the model was loaded without inputs that can be read", ""};
  if (auto ok = to.check_made_for(file); !ok) return ok.error();
  auto session = Session::create(model);
  if (!session) return session.error();
  ImportanceRun run;
  InputAdder adder(model, file, to);
  model.watch_stages([&](size_t stage, size_t bucket, gimbal_step step, const Steps::ReadValue& read) {
    return adder.add(stage, bucket, step, read);
  });
  Status ok = Done{};
  while (ok && run.windows < text.windows() && (!progress || progress(run.windows))) {
    ok = text.score(**session, text.tokens(run.windows), ScoredWindows::Rows::All,
                    [&](std::span<const float> logits, Token next) -> Status {
                      if (auto finite = check_logits(logits); !finite) return finite;
                      run.loss.add(log_sum_exp(logits) - logits[size_t(next)]);
                      return Done{};
                    });
    if (ok) run.windows++;
  }
  model.watch_stages({});
  if (ok) ok = check_finite(to);
  if (!ok) return ok.error();
  to.windows += uint32_t(run.windows), to.window = uint32_t(text.window());
  if (progress) progress(run.windows);
  run.next = text.first() + run.windows;
  return run;
}

}  // namespace gimbal
