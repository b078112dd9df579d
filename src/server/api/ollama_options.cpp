#include "base/format.h"
#include "server/api/ollama.h"

namespace gimbal::api {

Refused ollama_model(Call& call, Fields& f, bool generates, ServedModelPtr& to) {
  auto name = f.text("model");
  if (auto older = f.text("name"); older && !name) name = older;
  if (!name) f.need("model");
  if (!f.ok()) return f.error();
  return find_model(call, *name, generates, to);
}

void read_ollama_options(Fields& f, const ServedModel& model, Settings& to) {
  SamplerSettings& s = to.request.sampler;
  s = default_sampling(&SamplingSetting::ollama);
  const Json* j = f.object("options");
  if (!j) return;
  Fields o(*j, "options");
  read_sampling(o, &SamplingSetting::ollama, s);
  if (auto v = o.whole("num_predict", -2, INT32_MAX); v && *v >= 0) to.request.max_tokens = int(*v);
  set_seed(o, "seed", to);
  if (to.seeded && to.request.sampler.seed == uint64_t(-1)) to.seeded = false;  // any
  to.request.stops = o.texts("stop", 16);
  for (const std::string& stop : to.request.stops)
    if (stop.empty()) o.wrong("stop", "'options.stop' has an empty text");
  if (auto v = o.whole("num_ctx", 1, INT64_MAX); v && *v > model.context())
    o.wrong("num_ctx", format("'options.num_ctx': the context is {} tokens; it is set when the server starts",
                              model.context()));
  o.harmless({"num_keep"});  // nothing is ever forgotten
  for (const char* name : {"num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "use_mlock", "numa",
                           "low_vram", "f16_kv", "vocab_only"})
    o.refuse(name, "how a model runs is set when the server starts");
  o.refuse("mirostat", "there is no such sampler", 0);
  o.refuse("mirostat_tau", "there is no such sampler");
  o.refuse("mirostat_eta", "there is no such sampler");
  o.refuse("tfs_z", "there is no such sampler", 1);
  o.refuse("penalize_newline", "a newline is a token like others", true);
  if (auto no = o.finish()) f.wrong_as(*no);
}

void read_ollama_common(Fields& f, Settings& to) {
  if (const Json* form = f.any("format"); form && *form != "") {
    if (*form == "json") set_json_object(f, "format", to);
    else if (form->is_object()) set_schema(f, "format", *form, to);
    else f.wrong("format", "'format' must be \"json\" or a JSON schema");
  }
  f.refuse("truncate", "a prompt is never cut", false);
  f.refuse("shift", "a context is never cut", false);
  f.refuse("logprobs", "ask for them at /v1/chat/completions", false);
  f.refuse("top_logprobs", "ask for them at /v1/chat/completions", 0);
}

}  // namespace gimbal::api
