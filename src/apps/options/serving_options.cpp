#include "apps/options/serving_options.h"

#include <algorithm>

#include "apps/options/generation_options.h"
#include "base/text.h"
#include "runtime/sampling_table.h"

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

namespace {

constexpr const char* kSamplingSection = "Sampling";  // of SamplingOptions

// The sampling settings that were given, as a request of Ollama's API gives them.
Result<Json> sampling_json(const std::vector<std::string>& given, const SamplingOptions& sampling) {
  Json options = Json::object();
  for (const SamplingSetting& s : kSamplingSettings) {
    if (!s.option || std::find(given.begin(), given.end(), s.option) == given.end()) continue;
    const bool has_field = s.ollama.name || s.member == SamplingSetting::Member(&Sampling::greedy) ||
                           s.member == SamplingSetting::Member(&Sampling::seed);
    if (!has_field)
      return Error{Code::Usage, format("{} can be no default of requests", s.option), "leave it out"};
    if (const auto* number = std::get_if<float Sampling::*>(&s.member)) {
      options[s.ollama.name] = sampling.settings.**number;
    } else if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) {
      options[s.ollama.name] = sampling.settings.**whole;
    } else if (std::holds_alternative<uint64_t Sampling::*>(s.member)) {
      options["seed"] = *sampling.seed;
    } else if (s.member == SamplingSetting::Member(&Sampling::greedy)) {
      options["temperature"] = 0;
    }
  }
  return options;
}

class SectionReader {
 public:
  SectionReader(const std::string& model, const CommonOptions& engine, const LoadOptions& load,
                const std::optional<std::string>& workers)
      : arguments_(format("[model.{}]", gimbal::quoted(model)), ""),
        engine_(engine),
        load_(load),
        workers_(workers) {
    section_.model = model;
    arguments_.text("--workers", "LIST", "", workers_);
    arguments_.text("--system", "TEXT", "", system_);
    declare(arguments_, load_);
    declare(arguments_, engine_, Needs::Texts);
    sampling_.declare(arguments_);
  }

  Status take(const ConfigEntry& e, const std::string& source) {
    const auto wrong = [&](const std::string& what, const std::string& remedy) {
      return Error{Code::Usage, format("{}: {}", source, what), remedy};
    };
    const std::string option = "--" + e.name;
    for (const char* name : {"--lora", "--kernel-config"})
      if (option == name) return wrong(format("{} is for all models", e.name), "put it before the sections");
    for (const Arguments::Declared& d : arguments_.declared()) {
      const std::vector<std::string> names = split(d.names, ',');
      if (std::find(names.begin(), names.end(), option) == names.end()) continue;
      if (e.list && !d.repeatable) return wrong(format("{} takes one value", e.name), "");
      const bool flag = d.value.empty();
      for (const std::string& value : e.values) {
        if (flag && value == "false") continue;
        if (flag && value != "true")
          return wrong(format("{} must be true or false, not {}", e.name, gimbal::quoted(value)), "");
        words_.push_back(flag ? option : format("{}={}", option, value));
        sources_ += format("{}{}", sources_.empty() ? "" : ", ", source);
      }
      return Done{};
    }
    std::vector<std::string> known;
    for (const Arguments::Declared& d : arguments_.declared())
      for (const std::string& name : split(d.names, ','))
        if (name.starts_with("--")) known.push_back(name.substr(2));
    const auto similar = nearest(e.name, known);
    return wrong(format("a section of a model has no option {}", gimbal::quoted(e.name)),
                 similar ? format("did you mean {}?", *similar) : "`gimbal serve --help` lists options");
  }

  Result<ModelSection> finish() {
    if (auto ok = arguments_.parse(words_); !ok) return located(ok.error());
    const std::vector<std::string> given = arguments_.typed(kSamplingSection);
    if (auto ok = sampling_.finish(); !ok) return located(ok.error());
    auto settings = load_settings(load_, engine_);
    if (!settings) return located(settings.error());
    section_.settings = std::move(*settings);
    section_.workers = workers_;
    section_.engine = engine_;
    section_.has_context = engine_.context > 0;
    auto options = sampling_json(given, sampling_);
    if (!options) return located(options.error());
    ModelPreset preset{system_, {}, std::move(*options)};
    if (!preset.system.empty() || !preset.options.empty())
      section_.preset = std::make_shared<const ModelPreset>(std::move(preset));
    return section_;
  }

 private:
  Error located(const Error& e) const {
    Error out = e;
    out.message = format("{}: {}", sources_, e.message);
    return out;
  }

  Arguments arguments_;
  CommonOptions engine_;
  LoadOptions load_;
  std::optional<std::string> workers_;
  std::string system_;
  SamplingOptions sampling_;
  std::vector<std::string> words_;
  std::string sources_;
  ModelSection section_;
};

}  // namespace

void ModelSections::add(const ConfigEntry& e, const std::string& source) { lines_.emplace_back(e, source); }

Result<std::vector<ModelSection>> ModelSections::read(const CommonOptions& engine, const LoadOptions& load,
                                                      const std::optional<std::string>& workers) const {
  std::vector<std::string> models;
  for (const auto& [e, source] : lines_)
    if (std::find(models.begin(), models.end(), e.model) == models.end()) models.push_back(e.model);
  std::vector<ModelSection> all;
  for (const std::string& model : models) {
    SectionReader reader(model, engine, load, workers);
    for (const auto& [e, source] : lines_)
      if (e.model == model)
        if (auto ok = reader.take(e, source); !ok) return ok.error();
    auto section = reader.finish();
    if (!section) return section.error();
    all.push_back(std::move(*section));
  }
  return all;
}

}  // namespace gimbal
