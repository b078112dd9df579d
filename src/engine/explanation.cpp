#include "engine/explanation.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/json.h"
#include "engine/machine_cache.h"
#include "ops/op_def.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

class Choices {
 public:
  explicit Choices(std::vector<Explanation::Choice>& to) : to_(to) {}

  // The index of the choice for this op.
  size_t of(const ModelPlan& plan, const Stage& stage, const Bucket& bucket, size_t i) {
    const KernelPreference& wish = plan.options.kernels;
    const Device& d = *stage.device;
    const Program& program = bucket.program;
    const gimbal_op& op = program.ops[i];
    const char* kernel = d.kernel(bucket.choices[i].kernel).name;
    const char* format_name = info(DType(program.values[op.in[0]].dtype)).name;
    std::string why = why_chosen(bucket.choices[i], wish);
    if (const std::string moved = moved_by(plan, bucket, i); !moved.empty())
      why += format("; on {} by {}", d.id(), moved);
    const std::vector<Rejected> rejected = rejections(program, op, d, wish);
    std::string key = d.id() + ' ' + kernel + ' ' + format_name + ' ' + why;
    for (const Rejected& r : rejected) key.append("\n").append(std::to_string(r.kernel)).append(r.why);
    const auto [at, is_new] = known_.emplace(std::move(key), to_.size());
    if (is_new)
      to_.push_back(
          {info(OpKind(op.kind)).name, format_name, d.id(), kernel, std::move(why), by_reason(rejected, d)});
    return at->second;
  }

 private:
  std::vector<Explanation::Choice>& to_;
  std::map<std::string, size_t> known_;
};

std::optional<double> memory_speed(const Device& d) {
  const Json entry = MachineCache("limits").find(key_of(d));
  const auto at = entry.is_object() ? entry.find("read_bytes_per_second") : entry.end();
  if (at == entry.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

}  // namespace

double weight_bytes_per_token(const Program& p) {
  double bytes = 0;
  const gimbal_step one{1, 1};
  for (const gimbal_op& op : p.ops) {
    double weights = 0;
    for (int i = 0; i < op.inputs; i++)
      if (p.values[op.in[i]].slot == uint32_t(Slot::Weights))
        weights += double(p.info[op.in[i]].shape.bytes());
    // An op that looks a row up reads less than its weights.
    bytes +=
        std::min(weights, cost(OpKind(op.kind), p.input_shapes(op, one), p.output_shape(op, one)).bytes_read);
  }
  return bytes;
}

Explanation explain(const ModelPlan& plan) {
  Explanation e;
  e.architecture = plan.config.arch, e.layers = plan.config.layers;
  e.context = plan.options.context, e.sequences = plan.options.sequences;
  e.cache_tokens = cache_positions(plan), e.max_context_length = largest_context(plan);
  e.batch = plan.options.batch;
  e.kv_type = info(plan.options.cache_type).name, e.kv_rotation = plan.rotation;
  e.fast_kernels = plan.options.kernels.allow_fast;
  MemoryReport memory = memory_report(plan);
  e.host = memory.host;
  for (DeviceMemory& m : memory.devices) {
    const auto stage = std::find_if(plan.stages.begin(), plan.stages.end(),
                                    [&](const Stage& s) { return s.device->id() == m.device; });
    const char* name = stage->device->describe().name;
    e.devices.push_back({std::move(m), name ? name : "", memory_speed(*stage->device)});
  }
  for (PlacedLayers& p : placement(plan)) e.placement.push_back({p.device, p.contents, p.reason});
  for (const Stage& s : plan.stages)
    e.weight_bytes_per_token += weight_bytes_per_token(s.buckets[plan.bucket_for(1)].program);
  Choices choices(e.choices);
  for (size_t which : plan.distinct_buckets()) {
    Explanation::Program program{
        which == plan.bucket_for(1) ? "generation" : "prompt", plan.stages[0].buckets[which].rows, {}};
    for (const Stage& s : plan.stages) {
      const Bucket& bucket = s.buckets[which];
      for (size_t i = 0; i < bucket.program.ops.size(); i++) {
        const ValueInfo& out = bucket.program.output(bucket.program.ops[i]);
        program.ops.push_back({out.name, to_string(out.shape), choices.of(plan, s, bucket, i)});
      }
    }
    e.programs.push_back(std::move(program));
  }
  return e;
}

}  // namespace gimbal
