#include "workers/together.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/text.h"
#include "device/reason.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

// Of one memory. Numbers from workers are not trusted: their sums saturate.
struct Sum {
  std::vector<std::string> each;
  double alone = 0, shared = 0, free = 0;
  bool unshared = false, alike = true;

  void add(const wire::MemoryNeed& n) {
    const uint64_t common = std::min({n.shared, n.weights, n.total});
    free = each.empty() ? double(n.free) : std::min(free, double(n.free));
    alone += double(n.total - common), shared = std::max(shared, double(common));
    unshared |= n.weights > common;
    each.push_back(format("{} (weights {})", human_bytes(n.total), human_bytes(n.weights)));
    alike &= each.back() == each.front();
  }
  double needed() const { return alone + shared; }
};

// For numbers that a worker may have invented.
uint64_t whole(double bytes) { return uint64_t(std::min(bytes, 1e18)); }

}  // namespace

wire::Planned planned_needs(const ModelPlan& b) {
  wire::Planned all;
  for (const MemoryUse& u : memory_uses(b)) {
    wire::MemoryNeed n{u.device ? u.device->id() : "", u.sum.total(), u.sum.weights, 0, u.sum.free};
    for (const Stage& s : b.stages)
      if (s.packed && !s.reads_experts() && (u.device ? s.device == u.device : s.device->in_host_memory()))
        n.shared += s.memory.weights;
    all.needs.push_back(std::move(n));
  }
  return all;
}

Status fit_together(std::span<const wire::Planned> workers) {
  std::map<std::string, Sum, std::greater<>> sums;  // devices before the host that they may be part of
  for (const wire::Planned& w : workers)
    for (const wire::MemoryNeed& n : w.needs) sums[n.device].add(n);
  for (const auto& [device, sum] : sums) {
    if (sum.each.size() < 2 || sum.needed() <= sum.free) continue;
    std::string remedy = "start one worker there, or use a smaller or more strongly quantized model";
    if (sum.unshared && (device.empty() || device.starts_with("cpu:")))
      remedy += "; workers on the CPU share weights that `gimbal pack` wrote";
    Error e{
        Code::OutOfMemory,
        format(
            "not enough memory on {} for {} workers together: they need {}, which is {}{}, and {} are free",
            device.empty() ? "this machine" : device, sum.each.size(),
            sum.alike ? sum.each[0] + " each" : fmt::to_string(fmt::join(sum.each, " and ")),
            human_bytes(whole(sum.needed())),
            sum.shared > 0 ? " with shared weights counted once" : " in all", human_bytes(whole(sum.free))),
        std::move(remedy), reason::kNotEnoughMemory};
    e.field = "workers";
    return e;
  }
  return Done{};
}

}  // namespace gimbal
