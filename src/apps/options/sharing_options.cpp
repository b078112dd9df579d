#include "apps/options/sharing_options.h"

#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "runtime/memory_check.h"

namespace gimbal {

void declare(Arguments& a, SharingOptions& o) {
  a.section(kLoadSection);
  a.whole("--parallel", "N", "requests that a model answers at once (default 64)", o.parallel, 1, 1024);
  a.whole(
      "--cache-tokens", "N",
      "tokens of KV cache for all of them (default: what the device has free, at most a context for each)",
      o.cache_tokens, int64_t(1), int64_t(1) << 40);
  a.whole("--queue", "N", "requests that may wait; more are told to come again (default 256)", o.queue, 0,
          100000);
}

void print_cache_size(const ModelPlan& plan) {
  std::string where;
  for (const MemoryUse& u : memory_uses(plan))
    if (u.device)
      where += format("{}{} of {} free on {}", where.empty() ? "" : ", ", human_bytes(u.sum.cache),
                      human_bytes(u.sum.free), u.device->id());
  if (plan.options.promised)
    where += format("; other models will use {} of the host's memory", human_bytes(plan.options.promised));
  const int64_t tokens = cache_positions(plan);
  note(format("KV cache for {} tokens, {} contexts of {}: {}", tokens, tokens / plan.options.context,
              plan.options.context, where));
}

}  // namespace gimbal
