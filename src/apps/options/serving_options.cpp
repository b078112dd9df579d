#include "apps/options/serving_options.h"

namespace gimbal {

void declare(Arguments& a, LoadOptions& o) {
  declare(a, static_cast<SharingOptions&>(o));
  a.text("--draft", "auto|off|ngram|mtp|MODEL",
         "guess the next tokens of answers, and compute them at once where few are written and it pays; the "
         "answers stay the same (default auto: by the file's layers for it, else ngram; as of `run`)",
         o.draft);
  a.text("--mmproj", "FILE",
         "the projector file (mmproj) of the model, which then takes pictures (default: the one beside the "
         "model, if only one fits); none: texts only. Of several models give it in a section",
         o.mmproj);
}

Result<LoadSettings> load_settings(const LoadOptions& load, const CommonOptions& common) {
  if (auto ok = engine_options(common); !ok) return ok.error();  // which a worker would refuse later
  auto devices = device_settings(common);
  if (!devices) return devices.error();
  LoadSettings s{std::move(*devices), model_options(common)};
  s.model.draft = load.draft.value_or("auto");
  s.parallel = load.parallel.value_or(s.parallel), s.cache_tokens = load.cache_tokens.value_or(0);
  s.model.mmproj = load.mmproj.value_or("");
  s.queue = load.queue.value_or(s.queue);
  return s;
}

Result<ServingOptions> serving_options(const LoadSettings& s) {
  auto engine = engine_options(s.devices, s.model);
  if (!engine) return engine.error();
  ServingOptions out{std::move(*engine)};
  out.parallel = s.parallel, out.cache_tokens = s.cache_tokens;
  out.models = s.models, out.together = s.together;
  out.draft = s.model.draft, out.embeddings_only = s.model.embed;
  out.mmproj = s.model.mmproj;
  out.scheduler.queue = s.queue;
  out.planned = print_cache_size;
  return out;
}

}  // namespace gimbal
