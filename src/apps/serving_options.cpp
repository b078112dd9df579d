#include "apps/serving_options.h"

#include "apps/terminal.h"
#include "base/format.h"
#include "runtime/memory_check.h"

namespace gimbal {

void declare(Arguments& a, LoadOptions& o) {
  a.section(kLoadSection);
  a.whole("--parallel", "N", "requests that a model answers at once (default 64)", o.parallel, 1, 1024);
  a.whole(
      "--cache-tokens", "N",
      "tokens of KV cache for all of them (default: what the device has free, at most a context for each)",
      o.cache_tokens, int64_t(1), int64_t(1) << 40);
  a.whole("--queue", "N", "requests that may wait; more are told to come again (default 256)", o.queue, 0,
          100000);
  a.text("--draft", "auto|off|ngram|mtp|MODEL",
         "guess the next tokens of answers, and compute them at once where few are written and it pays; the "
         "answers stay the same (default auto: by the file's layers for it, else ngram; as of `run`)",
         o.draft);
}

Result<ServingOptions> serving_options(const LoadOptions& load, const CommonOptions& engine) {
  auto options = engine_options(engine);
  if (!options) return options.error();
  ServingOptions out{std::move(*options)};
  out.parallel = load.parallel.value_or(64);
  out.cache_tokens = load.cache_tokens.value_or(0);
  out.draft = load.draft.value_or("auto");
  out.scheduler.queue = load.queue.value_or(256);
  out.planned = [](const ModelPlan& b) {
    std::string where;
    for (const MemoryUse& u : memory_uses(b))
      if (u.device)
        where += format("{}{} of {} free on {}", where.empty() ? "" : ", ", human_bytes(u.sum.cache),
                        human_bytes(u.sum.free), u.device->id());
    const int64_t tokens = cache_positions(b);
    note(format("KV cache for {} tokens, {} contexts of {}: {}", tokens, tokens / b.options.context,
                b.options.context, where));
  };
  return out;
}

}  // namespace gimbal
