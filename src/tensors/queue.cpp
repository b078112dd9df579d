// Queues: an open device, its memory and its order of work.
#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

gimbal::Registry& registry() {
  static gimbal::Registry all(gimbal::backend_places());
  return all;
}

}  // namespace

Result<Queue> open_queue(const std::string& where, const QueueOptions& o) {
  gimbal::DeviceRequest r;
  r.strict = o.strict, r.allow_software = o.allow_software_devices;
  if (where != "auto") {
    auto at = gimbal::DeviceLocation::parse(where);
    if (!at) return to_public(at.error());
    r.backend = at->backend, r.strict = true;  // asked for by name: no other device takes its place
    if (where.find(':') != std::string::npos) r.index = at->index;
  }
  if (o.threads > 0) r.host_options += format("threads={}\n", o.threads);
  if (!o.cpu_variant.empty()) r.host_options += format("variant={}\n", o.cpu_variant);
  // GPUs have the kernels of tensors when they are opened for them.
  constexpr const char* kWithTensors = "tensors=1\n";
  if (where != "auto") r.options = (r.backend != gimbal::kHostBackend ? kWithTensors : "") + o.device_options;
  auto opened = registry().open(r);
  if (opened && where == "auto" && !gimbal::is_host(*opened->device)) {
    auto at = gimbal::DeviceLocation::parse(opened->device->id());
    if (!at) return to_public(at.error());
    r.backend = at->backend, r.index = at->index, r.strict = true, r.options = kWithTensors;
    const std::string why = opened->why;
    opened = registry().open(r);
    if (opened) opened->why = why;
  }
  if (!opened) return to_public(opened.error());
  auto s = std::make_shared<Queue::State>();
  s->why = opened->reason();
  s->strict = o.strict, s->on_fallback = o.on_fallback;
  if (o.verify && !gimbal::is_host(*opened->device)) s->first_uses = std::make_unique<FirstUses>();
  s->pool = std::make_shared<gimbal::MemoryPool>(std::move(opened->device), o.memory_limit);
  return TensorAccess::queue(std::move(s));
}

std::string Queue::location() const { return state_->device().id(); }
std::string Queue::name() const {
  const char* name = state_->device().describe().name;
  return name ? name : "";
}
std::string Queue::reason() const { return state_->why; }
bool Queue::is_cpu() const { return gimbal::is_host(state_->device()); }
bool Queue::same_as(const Queue& o) const { return state_ == o.state_; }

bool Queue::supports(DType t) const {
  const gimbal::Device& d = state_->device();
  const uint32_t features = d.describe().features;
  for (uint16_t r : d.kernels_for(uint16_t(gimbal::OpKind::Map)))
    if (gimbal::has(d.kernel(r).in[0].dtypes, own(t)) && !(d.kernel(r).needs & ~features)) return true;
  return false;
}

Status Queue::wait() const {
  if (computes_custom(*state_)) return inside_custom();
  const std::lock_guard lock(state_->mutex);
  if (auto ok = state_->device().wait(); !ok) return to_public(ok.error());
  if (auto ok = state_->files_whole(); !ok) return to_public(ok.error());
  if (!state_->dropped) return Done{};
  Error e = std::move(*state_->dropped);
  state_->dropped.reset();
  return e;
}

MemoryStats Queue::memory() const {
  const auto s = state_->pool->stats();
  return {s.live, s.cached, s.peak};
}
void Queue::trim() const {
  const std::lock_guard lock(state_->mutex);
  state_->pool->trim();
}
TransferCounts Queue::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}
std::vector<std::pair<std::string, uint64_t>> Queue::receipt() const {
  std::vector<std::pair<std::string, uint64_t>> all;
  {
    const std::lock_guard lock(state_->mutex);
    all.assign(state_->runs.begin(), state_->runs.end());
  }
  const std::lock_guard lock(state_->cpu_mutex);
  if (state_->cpu)
    for (auto& of_the_cpu : state_->cpu->receipt()) all.push_back(std::move(of_the_cpu));
  return all;
}

}  // namespace gimbal::v1
