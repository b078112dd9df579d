#include "engine/reports.h"

#include <algorithm>

#include "discovery/registry.h"
#include "files/packed_file.h"
#include "runtime/memory_check.h"

namespace gimbal {

std::vector<DeviceUse> device_uses(const ModelPlan& plan) {
  std::vector<DeviceUse> all;
  for (const MemoryUse& u : memory_uses(plan))
    if (u.device) all.push_back({u.device->id(), is_host(*u.device), u.sum.total()});
  return all;
}

MemoryReport memory_report(const ModelPlan& plan) {
  MemoryReport report;
  for (const MemoryUse& u : memory_uses(plan))
    if (u.device) report.devices.push_back({u.device->id(), u.sum, u.device->describe().memory_total});
    else report.host = {u.sum.sessions, u.sum.total(), u.sum.free};
  return report;
}

MemoryPlan memory_of_devices(const ModelPlan& plan) {
  MemoryPlan sum;
  for (const MemoryUse& u : memory_uses(plan))
    if (u.device) add_taken(sum, u.sum), sum.free += u.sum.free;
  return sum;
}

std::vector<PlacedLayers> placement(const ModelPlan& plan) {
  std::vector<PlacedLayers> all;
  for (const Stage& s : plan.stages)
    all.push_back({s.device->id(), contents(s), s.first_layer, s.layers, s.embedding, s.head, s.moved_in,
                   s.moved_out, s.packed ? s.packed->path() : "", s.why});
  return all;
}

std::vector<KernelCount> count_kernels(const ModelPlan& plan, size_t bucket) {
  std::vector<KernelCount> all;
  for (const Stage& stage : plan.stages) {
    const Bucket& b = stage.buckets[bucket];
    for (size_t i = 0; i < b.program.ops.size(); i++) {
      const char* kernel = stage.device->kernel(b.choices[i].kernel).name;
      auto same = std::find_if(all.begin(), all.end(), [&](const KernelCount& k) {
        return k.kernel == kernel && k.device == stage.device->id();
      });
      if (same != all.end()) same->ops++;
      else all.push_back({info(OpKind(b.program.ops[i].kind)).name, stage.device->id(), kernel, 1});
    }
  }
  return all;
}

std::vector<RejectedKernels> by_reason(const std::vector<Rejected>& rejections, const Device& d) {
  std::vector<RejectedKernels> all;
  for (const Rejected& r : rejections) {
    auto same = std::find_if(all.begin(), all.end(),
                             [&](const RejectedKernels& known) { return known.why == r.why; });
    if (same == all.end()) same = all.insert(all.end(), {r.why, {}});
    same->kernels.push_back(d.kernel(r.kernel).name);
  }
  return all;
}

std::string moved_by(const ModelPlan& plan, const Bucket& bucket, size_t op) {
  const int rule = bucket.rules.empty() ? -1 : bucket.rules[op];
  return rule < 0 ? "" : plan.options.tensor_rules[size_t(rule)].why;
}

std::vector<ExplainedOp> explain_ops(const Device& d, const Program& program,
                                     const std::vector<Choice>& choices, const KernelPreference& wish) {
  std::vector<ExplainedOp> all;
  for (size_t i = 0; i < program.ops.size(); i++) {
    const gimbal_op& op = program.ops[i];
    ExplainedOp e{info(OpKind(op.kind)).name,
                  program.output(op).name,
                  {},
                  to_string(program.output(op).shape),
                  d.id(),
                  d.kernel(choices[i].kernel).name,
                  why_chosen(choices[i], wish),
                  {}};
    for (int k = 0; k < op.inputs; k++) e.inputs.push_back(to_string(program.info[op.in[k]].shape));
    for (Rejected& r : rejections(program, op, d, wish))
      e.rejected.emplace_back(d.kernel(r.kernel).name, std::move(r.why));
    all.push_back(std::move(e));
  }
  return all;
}

PlanReport plan_report(const std::string& model, const ModelPlan& plan) {
  PlanReport r;
  r.model = model, r.architecture = plan.config.arch, r.file_bytes = plan.file_bytes;
  r.context = plan.options.context, r.trained_context = plan.config.context, r.batch = plan.options.batch;
  r.kv_type = info(plan.options.cache_type).name, r.kv_rotation = plan.rotation;
  r.memory = memory_report(plan), r.host_per_session = plan.session_bytes();
  r.placement = placement(plan), r.fits = fits(plan);
  return r;
}

}  // namespace gimbal
