#include "runtime/memory_check.h"

#include <algorithm>

#include "base/format.h"
#include "base/host_memory.h"
#include "device/reason.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

// A format with about half the bytes per value, if there is one; never one that loses much accuracy.
DType smaller_cache_type(const ModelPlan& b) {
  if (b.options.cache_type == DType::F32) return DType::F16;
  const bool halves = info(b.options.cache_type).block == 1;
  return halves && has(cache_types(b.config.head_dim), DType::Q8_0) ? DType::Q8_0 : b.options.cache_type;
}

int layers_on(const ModelPlan& b, const Device& d) {
  int n = 0;
  for (const Stage& p : b.stages)
    if (p.device == &d) n += p.layers;
  return n;
}

// Remedies, the most useful one first.
std::vector<Change> changes(const ModelSource& file, const ModelPlan& b, const MemoryUse& lacking, bool gpu) {
  std::vector<Change> all;
  if (gpu && lacking.device == &b.device()) {
    const auto fit = layers_that_fit(file, *lacking.device, b.options);
    const int now = layers_on(b, *lacking.device);
    if (fit && *fit > 0 && *fit < now)
      all.push_back({"gpu_layers", format("{}", *fit),
                     format("would fit on {}, with the other layers on the CPU", lacking.device->id())});
  }
  if (const int64_t positions = context_that_fits(b)) {
    all.push_back({"context", format("{}", positions), "would fit"});
    if (const DType smaller = smaller_cache_type(b); smaller != b.options.cache_type)
      all.push_back({"cache_type", info(smaller).name, "nearly halves the KV cache"});
  }
  return all;
}

std::string where(const ModelPlan& b, const MemoryUse& u) {
  if (!u.device) return "this machine for all that uses its memory";
  std::string on = u.device->id();
  if (!b.split()) return on;
  std::string what;
  for (const Stage& p : b.stages)
    if (p.device == u.device) what += (what.empty() ? "" : ", ") + contents(p);
  return on + " for " + what;
}

}  // namespace

void add_taken(MemoryPlan& to, const MemoryPlan& m) {
  to.weights += m.weights, to.cache += m.cache, to.step += m.step, to.activations += m.activations;
  to.output += m.output, to.scratch += m.scratch, to.sessions += m.sessions, to.transfer += m.transfer;
}

DTypeSet cache_types(int head_dim) {
  DTypeSet all = 0;
  for (DType t : kAllDTypes)
    if (has(kCacheTypes, t) && head_dim % info(t).block == 0) all |= set_of(t);
  return all;
}

std::vector<MemoryUse> memory_uses(const ModelPlan& b) {
  std::vector<MemoryUse> all;
  for (const Stage& p : b.stages) {
    auto same =
        std::find_if(all.begin(), all.end(), [&](const MemoryUse& u) { return u.device == p.device; });
    if (same == all.end()) {
      same = all.insert(all.end(), {p.device, {}});
      same->sum.free = p.memory.free;
    }
    add_taken(same->sum, p.memory);
  }
  MemoryUse host{nullptr, {}};
  for (const MemoryUse& u : all)
    if (u.device->in_host_memory()) add_taken(host.sum, u.sum);
  host.sum.sessions = b.host_bytes();
  host.sum.free = free_for(b.options, nullptr);
  all.push_back(host);
  return all;
}

uint64_t taken(const ModelPlan* b, const Device* device) {
  if (b)
    for (const MemoryUse& u : memory_uses(*b))
      if (device && u.device ? u.device->id() == device->id() : u.device == device) return u.sum.total();
  return 0;
}

uint64_t free_for(const RunOptions& o, const Device* device) {
  const uint64_t all = device ? device->describe().memory_free : host_memory().available;
  const uint64_t beside = taken(o.beside, device) + (device ? 0 : o.promised);
  const uint64_t free = all - std::min(all, beside);
  // A device in the host's memory may have a limit of its own, which the others do not share.
  const bool of_host = device && o.promised && device->in_host_memory();
  return of_host ? std::min(free, free_for(o, nullptr)) : free;
}

int64_t context_that_fits(const ModelPlan& b) {
  int64_t least = INT64_MAX;
  for (const MemoryUse& u : memory_uses(b)) {
    const MemoryPlan& m = u.sum;
    if (m.total() - m.cache > m.free) return 0;
    if (m.cache == 0 || b.pools.empty()) continue;
    const uint64_t room = m.free - (m.total() - m.cache);
    const uint64_t per_page = std::max<uint64_t>(1, m.cache / uint64_t(b.pools[0].pages));
    least = std::min(least, int64_t(room / per_page / uint64_t(b.options.sequences) * kPagePositions));
  }
  return least == INT64_MAX ? 0 : least;
}

int64_t largest_context(const ModelPlan& b) {
  bool pages = false;
  for (const MemoryUse& u : memory_uses(b)) {
    if (u.sum.total() - u.sum.cache > u.sum.free) return 0;
    pages = pages || (u.sum.cache > 0 && !b.pools.empty());
  }
  const int64_t trained = b.config.context;
  return pages ? std::min(trained, context_that_fits(b)) : trained;
}

Result<int> layers_that_fit(const ModelSource& file, const Device& device, const RunOptions& options) {
  auto config = configure(file, options.arch);
  if (!config) return config.error();
  // One device stands in for the others here: only the use of the last stage matters.
  int fits = 0, too_many = config->layers + 1;
  while (too_many - fits > 1) {
    const int layers = fits + (too_many - fits) / 2;
    const Placement where[] = {{&device, config->layers - layers, ""}, {&device, layers, ""}};
    auto b = make_model_plan(file, where, options);
    if (!b) return b.error();
    const MemoryPlan& m = b->last().memory;
    (m.total() <= m.free ? fits : too_many) = layers;
  }
  return fits;
}

bool fits(const ModelPlan& b) {
  for (const MemoryUse& u : memory_uses(b))
    if (u.sum.total() > u.sum.free) return false;
  return true;
}

Status check_memory(const ModelSource& file, const ModelPlan& b) {
  for (const MemoryUse& u : memory_uses(b)) {
    const MemoryPlan& m = u.sum;
    if (m.total() <= m.free) continue;
    const std::string promised =
        b.options.promised && (!u.device || u.device->in_host_memory())
            ? format(" in addition to {} reserved by other models", human_bytes(b.options.promised))
            : "";
    const bool gpu = u.device && u.device->describe().threads == 0;
    Error e{Code::OutOfMemory,
            format("not enough memory on {}: {} needed (weights {}, KV cache {} for {} positions, "
                   "activations {}, other {}), {} free{}",
                   where(b, u), human_bytes(m.total()), human_bytes(m.weights), human_bytes(m.cache),
                   b.options.context, human_bytes(m.activations),
                   human_bytes(m.step + m.output + m.scratch + m.sessions), human_bytes(m.free), promised),
            gpu ? "another device may have more memory" : "", reason::kNotEnoughMemory};
    e.changes = changes(file, b, u, gpu);
    if (!gpu && e.changes.empty())
      e.remedy = "use a smaller or more strongly quantized model, or a machine with more memory";
    return e;
  }
  return Done{};
}

}  // namespace gimbal
