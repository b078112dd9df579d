// gimbal serve: models behind the APIs that other programs use.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/commands/certificate_options.h"
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/options/generation_options.h"
#include "apps/options/library_options.h"
#include "apps/options/prefix_store_options.h"
#include "apps/options/serving_options.h"
#include "apps/reports/backends_json.h"
#include "apps/serving/http_service.h"
#include "apps/serving/model_loading.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "base/folders.h"
#include "fetch/store.h"
#include "model/embedded_model.h"
#include "server/api/text.h"

namespace gimbal {
namespace {

std::string backends_text() {
  const double begin = now();
  const auto reports = discover_backends();
  const auto best = choose_device(reports, {});
  std::vector<Variant> variants;
  if (auto cpu = open_device({"cpu", 0, true})) variants = variants_of(*cpu->device);
  return dump(backends_json(reports, best, variants, now() - begin));
}

// Handles POST /v1/backends/reload. Nothing is replaced if a backend in use would become unusable.
Result<std::string> reload_backends(LoadedModels& models) {
  const auto reports = discover_backends();
  for (const ServedModelPtr& model : models.loaded())
    for (const DeviceUse& used : model->devices())
      for (const BackendReport& r : reports)
        if (used.device.starts_with(r.backend + ":") && !r.available)
          return Error{Code::NoBackend,
                       format("{} computes {}, but would no longer be available: {}", used.device,
                              model->id(), r.message),
                       r.remedy};
  if (auto ok = models.renew(); !ok) {
    if (ok.error().code != Code::Unsupported) note("the workers do not restart: " + ok.error().message);
    return ok.error();
  }
  note("the workers were replaced and use the current code of the backends");
  return backends_text();
}

class Serve final : public Command {
 public:
  void declare(Arguments& a) override {
    a.models(kModelHelp, models_);
    gimbal::declare(a, http_, "the port (default 8080); 0: any free port");
    a.section("Configuration");
    a.configurable();
    a.model_sections([this](const ConfigEntry& e, const std::string& source) { sections_.add(e, source); });
    a.remark("[model.NAME]",
             "a section of the file with settings of one model: its device, context, KV cache, sampling "
             "defaults and `system`, a text for conversations without one");
    a.section("Models");
    a.text("--workers", "LIST",
           "devices that share the requests, one worker process each: cpu,cuda:0 (default: one worker, on "
           "the device chosen below); none: compute in this process",
           workers_);
    a.whole("--keep-alive", "SECONDS", "unload a model after this many idle seconds (default: never)",
            keep_alive_, 1, 1 << 30);
    a.flag("--all-models",
           "also serve the models that `gimbal list` shows: each is loaded when a request names it, and "
           "clients may fetch, describe and delete models (default: if no MODEL is named)",
           all_models_);
    a.texts("--alias", "NAME",
            "the name of the model in the APIs, in place of the file's; repeatable, or with commas: each is "
            "known, and answers have the first. For one model only",
            aliases_);
    a.text("--slot-save-path", "FOLDER",
           "let clients save the states of slots in files of this folder, and restore them (POST /slots/N)",
           slot_save_path_);
    prefixes_.declare(a);
    reasoning_.declare_for_requests(a);
    certificates_.declare(a);
    gimbal::declare(a, load_);
    gimbal::declare(a, engine_, Needs::Texts);
    a.example("gimbal serve model.gguf --port 8080");
    a.example("gimbal serve llama.gguf qwen.gguf --keep-alive 600");
    a.example("GIMBAL_API_KEY=secret gimbal serve model.gguf --host 0.0.0.0");
    a.example("curl http://127.0.0.1:8080/v1/models");
  }

  Result<int> run() override {
    if (auto ok = apply(http_); !ok) return ok.error();
    if (in_library(engine_))
      if (auto ok = check_library_options(engine_, {{"--workers", workers_.has_value()},
                                                    {"--prefix-store", prefixes_.given()},
                                                    {"--slot-save-path", slot_save_path_.has_value()}});
          !ok)
        return ok.error();
    auto of_template = reasoning_.of_template();
    if (!of_template) return of_template.error();
    auto settings =
        ServedSettings::read(engine_, load_, workers_, sections_, std::max(1, int(models_.size())), quiet);
    if (!settings) return settings.error();
    std::vector<ModelFile> files;
    auto all = serves_all();
    if (!all) return all.error();
    if (models_.empty()) models_.push_back("default");
    auto names = names_of_model();
    if (!names) return names.error();
    for (const std::string& name : models_) {
      auto file = open_model(name, engine_, quiet);
      if (!file) return file.error();
      files.push_back(std::move(*file));
    }
    if (auto ok = check_slot_folder(); !ok) return ok.error();
    auto pages = prefixes_.open();
    if (!pages) return pages.error();
    auto loading =
        ModelLoading::create(std::move(*settings), files, *all,
                             {*pages, prefixes_.salt(), file_options(engine_).lora, http_.log_json, quiet});
    if (!loading) return loading.error();
    ModelLoading& loads = **loading;
    http_.takes_pictures = loads.takes_pictures();
    HttpService service(http_, json, quiet);
    auto models = LoadedModels::create(std::move(files), options_of(loads, std::move(*names), *all));
    if (!models) return models.error();
    for (const ModelSettings& s : loads.settings().sections())
      if (!(*models)->name_of(s.model))
        return Error{Code::Usage,
                     format("[model.{}]: this server has no model of this name", gimbal::quoted(s.model)),
                     "`gimbal list` shows names; a file has its name without .gguf"};
    api::Services services{**models, GIMBAL_VERSION, backends_text};
    services.reasoning_budget = reasoning_.budget();
    services.template_settings = std::move(*of_template);
    services.keeps_reasoning = reasoning_.in_text();
    if (slot_save_path_) services.slot_save_path = *slot_save_path_, services.slots.keep_texts();
    services.pages = *pages;
    services.reload_backends = [&] { return reload_backends(**models); };
    if (auto ok = certificates_.apply(services); !ok) return ok.error();
    loads.reports_to(services);
    const Status served = service.run(**models, services);
    services.pulls.end();
    models->reset();  // running requests still report to `services`
    if (!served) return served.error();
    return kDone;
  }

 private:
  LoadedModels::Options options_of(ModelLoading& loads, std::vector<std::string> names, bool all) {
    LoadedModels::Options options;
    options.names = std::move(names);
    options.keep_alive = keep_alive_.value_or(0), options.inside = embedded_model();
    options.load = [&loads](const std::string& id, const ModelFile& source, int context) {
      return loads.load(id, source, context);
    };
    options.grows = [&loads](const std::string& id) { return !loads.settings().of(id).has_context; };
    options.preset = [&loads](const std::string& id) { return loads.settings().of(id).preset; };
    if (!all) return options;
    const std::string folder = url_models_folder();
    options.library = std::make_unique<ModelLibrary>(folder.empty() ? "" : folder + "/.described");
    options.open = [this](const std::string& path) {
      auto file = open_model_file(path, file_options(engine_));
      if (!file) note(file.error().message);  // no client learns the path
      return file;
    };
    return options;
  }

  Status check_slot_folder() const {
    if (!slot_save_path_) return Done{};
    std::error_code e;
    if (std::filesystem::is_directory(*slot_save_path_, e)) return Done{};
    return Error{Code::Usage, format("--slot-save-path: {} is no folder", gimbal::quoted(*slot_save_path_)),
                 "name a folder that exists"};
  }

  Result<bool> serves_all() const {
    const bool adapted = !engine_.lora_texts.empty();  // to one model
    if (all_models_ && adapted)
      return Error{Code::Usage, "--all-models and --lora exclude each other: an adapter fits one model only",
                   "give only one of them"};
    return all_models_ || (models_.empty() && !adapted);
  }

  // --alias, checked.
  Result<std::vector<std::string>> names_of_model() const {
    std::vector<std::string> names;
    for (const std::string& given : aliases_)
      for (std::string& name : split(given, ',')) {
        const bool plain = std::none_of(name.begin(), name.end(), [](char c) { return uint8_t(c) <= 32; });
        if (name.empty() || !plain)
          return Error{Code::Usage, format("--alias: {} is no name of a model", gimbal::quoted(name)),
                       "give a name without white space, such as gpt-4o-mini"};
        names.push_back(std::move(name));
      }
    if (!names.empty() && models_.size() > 1)
      return Error{Code::Usage, format("--alias names one model, and {} are served", models_.size()),
                   "give one model, or leave --alias out: each model has the name of its file"};
    return names;
  }

  std::vector<std::string> models_, aliases_;
  std::optional<std::string> workers_;
  std::optional<int> keep_alive_;
  bool all_models_ = false;
  ModelSections sections_;
  std::optional<std::string> slot_save_path_;
  PrefixStoreOptions prefixes_;
  ReasoningOptions reasoning_;
  HttpOptions http_;
  ServedCertificateOptions certificates_;
  LoadOptions load_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<Serve>(); }

}  // namespace gimbal
