#include "workers/memory_reservations.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text.h"
#include "device/reason.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

// Numbers from workers are not trusted: sums saturate.
constexpr uint64_t kMost = uint64_t(1) << 60;
uint64_t sum(uint64_t a, uint64_t b) { return sum_up_to(kMost, a, b); }

}  // namespace

uint64_t anonymous_bytes(pid_t pid) {
  unsigned long long size = 0, resident = 0, of_files = 0;  // pages
  const std::string line = first_line(format("/proc/{}/statm", pid));
  if (std::sscanf(line.c_str(), "%llu %llu %llu", &size, &resident, &of_files) != 3) return 0;
  return difference_or_zero(resident, of_files) * uint64_t(sysconf(_SC_PAGESIZE));
}

MemoryReservations::Worker::Worker(std::shared_ptr<MemoryReservations> all, Entry entry)
    : all_(std::move(all)), entry_([&] {
        const std::lock_guard lock(all_->mutex_);
        return all_->workers_.insert(all_->workers_.end(), std::move(entry));
      }()) {}

MemoryReservations::Worker::~Worker() {
  const std::lock_guard lock(all_->mutex_);
  all_->workers_.erase(entry_);
}

uint64_t MemoryReservations::Worker::of_others() const {
  const std::lock_guard lock(all_->mutex_);
  struct Process {
    uint64_t own = 0, before = UINT64_MAX;
  };
  std::map<pid_t, Process> processes;
  std::map<std::string, uint64_t> mapped;  // of each model
  for (const Entry& e : all_->workers_) {
    const bool same = e.model == entry_->model;
    // A mapped page can be dropped and read again, so the system reports it as free, resident or not.
    if (!same) mapped[e.model] = std::max(mapped[e.model], e.mapped);
    if (&e == &*entry_ || (same && e.divides && entry_->divides)) continue;
    Process& p = processes[e.fresh ? 0 : e.pid];
    p.own = sum(p.own, e.own), p.before = std::min(p.before, e.before);
  }
  uint64_t promised = 0;
  for (const auto& [pid, p] : processes)
    promised = sum(promised,
                   difference_or_zero(p.own, difference_or_zero(pid ? all_->resident_(pid) : 0, p.before)));
  for (const auto& [model, bytes] : mapped) promised = sum(promised, bytes);
  return promised;
}

void MemoryReservations::Worker::is_process(pid_t pid) {
  const std::lock_guard lock(all_->mutex_);
  entry_->pid = pid, entry_->fresh = true;
}

void MemoryReservations::Worker::plans(const wire::Planned& planned) {
  const std::lock_guard lock(all_->mutex_);
  Entry& e = *entry_;
  if (std::exchange(e.fresh, false)) e.before = all_->resident_(e.pid), e.own = e.mapped = 0;
  for (const wire::MemoryNeed& n : planned.needs)
    if (n.device.empty()) {
      const uint64_t mapped = std::min({n.shared, n.weights, n.total});
      e.own = sum(e.own, n.total - mapped), e.mapped = sum(e.mapped, mapped);
    }
}

void MemoryReservations::Worker::gives_up() {
  const std::lock_guard lock(all_->mutex_);
  entry_->pid = 0, entry_->fresh = true, entry_->own = entry_->mapped = 0;
}

std::unique_ptr<MemoryReservations::Worker> MemoryReservations::worker(const std::string& model,
                                                                       bool divides) {
  return std::unique_ptr<Worker>(new Worker(shared_from_this(), {model, divides}));
}

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
