#include "base/clock.h"
#include "base/format.h"
#include "server/api/ollama.h"
#include "server/named_model.h"

namespace gimbal::api {
namespace {

// Any size: one that is too large for the model or its devices is no mistake.
std::optional<int64_t> read_num_ctx(Fields& f) {
  const Json* j = f.object("options");
  if (!j) return {};
  Fields o(*j, "options");
  const auto tokens = o.whole("num_ctx", INT64_MIN, INT64_MAX);
  if (!o.ok()) f.wrong_as(*o.error());
  return tokens;
}

// The options that a request does not give.
void add_missing(Json& body, const Json& defaults) {
  Json& options = body["options"];
  if (options.is_null()) options = Json::object();
  if (!options.is_object()) return;
  for (const auto& [name, value] : defaults.items())
    if (!options.contains(name) || options[name].is_null()) options[name] = value;
}

// How a model runs is a setting of the server.
void note_ignored(Call& call, Fields& o) {
  o.harmless({"num_ctx", "num_keep"});  // read_num_ctx(); a context is never cut
  // Of the right types, as in Ollama.
  std::vector<std::string> ignored;
  for (const char* name : {"num_gpu", "main_gpu", "num_batch", "num_thread", "draft_num_predict"})
    if (o.whole(name, INT64_MIN, INT64_MAX)) ignored.emplace_back(name);
  if (o.flag("use_mmap")) ignored.emplace_back("use_mmap");
  for (std::string& name : o.take_unread()) ignored.push_back(std::move(name));
  if (ignored.empty()) return;
  constexpr size_t kNamed = 12;
  const size_t n = ignored.size();
  if (n > kNamed) ignored.resize(kNamed);
  for (std::string& name : ignored) name = quoted_briefly(name);
  call.note(format("options without effect here: {}{}", fmt::join(ignored, ", "), n > kNamed ? ", ..." : ""));
}

}  // namespace

Refused ollama_model(Call& call, Fields& f, bool generates, ServedModelPtr& to) {
  auto name = f.text("model");
  if (auto older = f.text("name"); older && !name) name = older;
  if (!name) f.need("model");
  const auto context = read_num_ctx(f);
  if (!f.ok()) return f.error();
  const double begin = now();
  if (auto no = find_model(call, *name, generates, to, context.value_or(0))) return no;
  call.load_seconds = now() - begin;
  call.note_context(context, *to);
  if (const ModelPreset* preset = to->preset()) add_missing(call.body, preset->options);
  return {};
}

void read_ollama_options(Call& call, Fields& f, Settings& to) {
  SamplerSettings& s = to.request.sampler;
  s = default_sampling(&SamplingSetting::ollama);
  if (const Json* j = f.object("options")) read_ollama_parameters(call, f, "options", *j, to);
}

void read_ollama_parameters(Call& call, Fields& f, const char* where, const Json& j, Settings& to) {
  Fields o(j, where);
  SamplerSettings& s = to.request.sampler;
  read_sampling(o, &SamplingSetting::ollama, s);
  if (auto v = o.whole("num_predict", -2, INT32_MAX); v && *v >= 0) to.request.max_tokens = int(*v);
  set_seed(o, "seed", to);
  if (to.seeded && to.request.sampler.seed == uint64_t(-1)) to.seeded = false;  // any
  to.request.stops = o.texts("stop", 16);
  for (const std::string& stop : to.request.stops)
    if (stop.empty()) o.wrong("stop", format("'{}' has an empty text", o.path("stop")));
  o.refuse("tfs_z", "there is no such sampler", 1);
  o.refuse("penalize_newline", "a newline is a token like others", true);
  note_ignored(call, o);
  if (auto no = o.finish()) f.wrong_as(*no);
}

void ignore_ollama_options(Call& call, Fields& f) {
  const Json* j = f.object("options");
  if (!j) return;
  Fields o(*j, "options");
  note_ignored(call, o);
  if (auto no = o.finish()) f.wrong_as(*no);
}

void read_ollama_common(Fields& f, Settings& to) {
  read_certificate(f);
  if (const Json* form = f.any("format"); form && *form != "") {
    if (*form == "json") set_json_object(f, "format", to);
    else if (form->is_object()) set_schema(f, "format", *form, to);
    else f.wrong("format", "'format' must be \"json\" or a JSON schema");
  }
  f.refuse("truncate", "a prompt is never cut", false);
  f.refuse("shift", "a context is never cut", false);
  const bool logprobs = f.flag("logprobs").value_or(false);
  const int64_t top = f.whole("top_logprobs", 0, 20).value_or(0);
  if (top > 0 && !logprobs) f.wrong("top_logprobs", "'top_logprobs' needs 'logprobs': true");
  if (logprobs) to.request.logprobs = int(top);
}

}  // namespace gimbal::api
