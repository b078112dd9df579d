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

}  // namespace

Result<Queue> opened_cpu(std::mutex& mutex, std::optional<Queue>& cpu) {
  const std::lock_guard lock(mutex);
  if (!cpu) {
    auto opened = open_queue("cpu");
    if (!opened) return opened.error();
    cpu = std::move(*opened);
  }
  return *cpu;
}

std::string words_of(gimbal::OpKind kind, gimbal::DType from, gimbal::DType to) {
  return format("{} of {} to {}", gimbal::info(kind).name, gimbal::info(from).name, gimbal::info(to).name);
}

Tensor computed_by_the_cpu(const std::string& what, const Error& why, std::span<const Tensor> in,
                           const std::function<Tensor(std::span<const Tensor>)>& compute) {
  const auto& queue = state_of(in[0]).queue;
  auto cpu = opened_cpu(queue->cpu_mutex, queue->cpu);
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
