// Operations that a device lacks, computed by the CPU: operands are copied there and the result back. The
// queue lists them with their reasons; a strict queue refuses them.
#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

void note(Queue::State& q, Fallback f) {
  {
    const std::lock_guard lock(q.cpu_mutex);
    for (const Fallback& known : q.fallbacks)
      if (known.what == f.what) return;
    q.fallbacks.push_back(f);
  }
  if (q.on_fallback) q.on_fallback(f);
}

// The queue of the CPU that computes for this one; opened at its first use.
Result<Queue> cpu_of(Queue::State& q) {
  const std::lock_guard lock(q.cpu_mutex);
  if (!q.cpu) {
    auto cpu = open_queue("cpu");
    if (!cpu) return cpu.error();
    q.cpu = std::move(*cpu);
  }
  return *q.cpu;
}

}  // namespace

std::string words_of(gimbal::OpKind kind, gimbal::DType from, gimbal::DType to) {
  return format("{} of {} to {}", gimbal::info(kind).name, gimbal::info(from).name, gimbal::info(to).name);
}

Tensor computed_by_the_cpu(const std::string& what, const Error& why, std::span<const Tensor> in,
                           const std::function<Tensor(std::span<const Tensor>)>& compute) {
  const auto& queue = state_of(in[0]).queue;
  auto cpu = cpu_of(*queue);
  if (!cpu) return refuse(in[0], cpu.error());
  std::vector<Tensor> there;
  for (const Tensor& t : in) there.push_back(t.to(*cpu));
  const Tensor y = compute(there).to(in[0].queue());
  if (y.ok()) note(*queue, {what, cpu->location(), why});
  return y;
}

std::vector<Fallback> Queue::fallbacks() const {
  const std::lock_guard lock(state_->cpu_mutex);
  return state_->fallbacks;
}

}  // namespace gimbal::v1
