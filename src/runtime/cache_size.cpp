#include "runtime/memory_check.h"

#include <algorithm>

#include "base/saturating.h"

namespace gimbal {
namespace {

// Bytes for the cache and the memory that grows with it. `modest`: leaves only the required rest.
uint64_t room(const MemoryUse& u, const CacheBudget& budget, bool modest) {
  const uint64_t fixed = u.sum.total() - u.sum.cache, free = u.sum.free / uint64_t(budget.together);
  if (modest) return difference_or_zero(free - free / 16, fixed);
  if (!u.device || u.device->in_host_memory())
    return difference_or_zero(free / 2, fixed) / uint64_t(budget.models);
  return difference_or_zero(free - free / 16, 2 * fixed) / uint64_t(budget.models);
}

// The positions that fit by the room on each device; two plans give the bytes per position.
int64_t positions_that_fit(const ModelPlan& small, const ModelPlan& large, const CacheBudget& budget,
                           bool modest) {
  const auto before = memory_uses(small), after = memory_uses(large);
  const int64_t least = small.options.cache_positions, most = large.options.cache_positions;
  int64_t fit = most;
  for (size_t i = 0; i < before.size() && i < after.size(); i++) {
    const uint64_t needed =
        difference_or_zero(after[i].sum.total(), before[i].sum.total() - before[i].sum.cache);
    const uint64_t there = room(before[i], budget, modest);
    if (needed <= there) continue;
    const double growth = double(std::max<uint64_t>(1, difference_or_zero(needed, before[i].sum.cache)));
    const double share = std::min(1.0, double(difference_or_zero(there, before[i].sum.cache)) / growth);
    fit = std::min(fit, least + int64_t(share * double(most - least)));
  }
  return fit / kPagePositions * kPagePositions;
}

}  // namespace

int64_t cache_positions(const ModelPlan& b) {
  int64_t least = 0;
  for (const StatePool& pool : b.pools)
    if (const int64_t here = int64_t(pool.pages) * kPagePositions;
        pool.kind == StateKind::Paged && pool.window == 0)
      least = least ? std::min(least, here) : here;
  return least;
}

Result<ModelPlan> with_larger_cache(const ModelSource& file, ModelPlan plan, const CacheBudget& budget) {
  if (budget.most <= plan.options.cache_positions) return plan;
  std::vector<Placement> where;
  for (const Stage& s : plan.stages)
    if (has_layers(s)) where.push_back({s.device, s.layers, s.why});
  RunOptions run = plan.options;
  run.cache_positions = budget.most;
  auto large = make_model_plan(file, where, run);
  if (!large) return large;
  const int64_t generous = positions_that_fit(plan, *large, budget, false);
  const int64_t fit =
      std::max(generous, std::min(budget.modest, positions_that_fit(plan, *large, budget, true)));
  if (fit >= budget.most) return large;
  if (fit <= plan.options.cache_positions) return plan;
  run.cache_positions = fit;
  return make_model_plan(file, where, run);
}

}  // namespace gimbal
