#include "apps/serving_options.h"

namespace gimbal {

void declare(Arguments& a, LoadOptions& o) {
  declare(a, static_cast<SharingOptions&>(o));
  a.text("--draft", "auto|off|ngram|mtp|MODEL",
         "guess the next tokens of answers, and compute them at once where few are written and it pays; the "
         "answers stay the same (default auto: by the file's layers for it, else ngram; as of `run`)",
         o.draft);
}

Result<ServingOptions> serving_options(const LoadOptions& load, const CommonOptions& engine) {
  auto options = engine_options(engine);
  if (!options) return options.error();
  ServingOptions out{std::move(*options)};
  out.parallel = load.parallel.value_or(kTextsAtOnce);
  out.cache_tokens = load.cache_tokens.value_or(0);
  out.draft = load.draft.value_or("auto");
  out.scheduler.queue = load.queue.value_or(out.scheduler.queue);
  out.planned = tell_cache;
  return out;
}

}  // namespace gimbal
