// gimbal serve: models behind the APIs that other programs use.
#include <unistd.h>
#include <filesystem>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>

#include "apps/commands/certificate_options.h"
#include "apps/commands/command.h"
#include "apps/commands/model_path.h"
#include "apps/commands/open_model.h"
#include "apps/options/model_sections.h"
#include "apps/options/prefix_store_options.h"
#include "apps/options/serving_options.h"
#include "apps/reports/backends_json.h"
#include "apps/reports/stderr_sink.h"
#include "apps/serving/http_service.h"
#include "apps/serving/library_model.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "base/folders.h"
#include "engine/picture_input.h"
#include "fetch/store.h"
#include "model/embedded_model.h"
#include "server/api/text.h"
#include "server/remote_model.h"

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
    a.whole("--reasoning-budget", "N",
            "the most tokens that a model thinks, where a request does not say; -1: no limit (default)",
            reasoning_budget_, -1, INT_MAX);
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
    auto settings = load_settings(load_, engine_);
    if (!settings) return settings.error();
    settings->models = std::max(1, int(models_.size()));
    auto serving = serving_options(*settings);
    if (!serving) return serving.error();
    if (quiet) serving->planned = {};
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
    auto devices = worker_devices(workers_, engine_);
    if (!devices) return devices.error();
    if (auto ok = check_slot_folder(); !ok) return ok.error();
    auto pages = prefixes_.open();
    if (!pages) return pages.error();
    auto placed = sections(settings->models);
    if (!placed) return placed.error();
    const auto place_of = [&](const std::string& id) -> const Placed* {
      for (const Placed& p : *placed)
        if (p.section.model == id || p.section.model == id + ":latest" || p.section.model + ":latest" == id)
          return &p;
      return nullptr;
    };

    if (load_.mmproj && *load_.mmproj != kNoProjector && (files.size() > 1 || *all))
      return Error{Code::Usage, "--mmproj is the projector of one model, and several are served",
                   "put it into the section [model.NAME] of its model, in the file of --config"};
    const std::map<std::string, std::string> beside = projectors_beside(files);
    http_.takes_pictures = !beside.empty();
    const auto takes = [&](const LoadSettings& s) {
      return !s.model.mmproj.empty() && s.model.mmproj != kNoProjector;
    };
    http_.takes_pictures |= takes(*settings);
    for (const Placed& p : *placed) http_.takes_pictures |= takes(p.section.settings);
    // The projector file of a model; empty: none.
    const auto projector_of = [&](const LoadSettings& s, const ModelFile& source) -> std::string {
      if (takes(s)) return s.model.mmproj;
      const auto at = beside.find(source.path);
      if (!s.model.mmproj.empty() || at == beside.end()) return "";
      if (!quiet) note(format("{} takes pictures by {}, which is beside it", source.name, at->second));
      return at->second;
    };
    HttpService service(http_, json, quiet);
    std::atomic<api::Services*> told{nullptr};
    const auto memory = std::make_shared<MemoryReservations>();
    // A baseline: the memory of this process before it loads a model (--workers none).
    const auto itself = memory->worker("", false);
    itself->is_process(getpid());
    itself->plans({});
    LoadedModels::Options options;
    options.keep_alive = keep_alive_.value_or(0), options.inside = embedded_model();
    options.load = [&](const std::string& id, const ModelFile& source,
                       int context) -> Result<ServedModelPtr> {
      const Placed* own = place_of(id);
      const std::vector<std::string>& on = own ? own->devices : *devices;
      LoadSettings s = own ? own->section.settings : *settings;
      if (const CommonOptions& of = own ? own->section.engine : engine_; in_library(of))
        return load_in_library(id, source, of, s);
      if (context) s.model.context = context;
      s.model.mmproj = projector_of(s, source);
      if (on.empty()) {
        const auto turn = memory->turn_to_load();
        ServingOptions o = own ? own->serving : *serving;
        o.memory = memory, o.mmproj = s.model.mmproj;
        o.pages = *pages, o.salt = prefixes_.salt(), o.lora = file_options(engine_).lora;
        if (context) o.engine.run.context = context;
        return load_local_model(backend_registry(), id, source, o, stderr_sink(quiet));
      }
      RemoteOptions remote{{program_path(), "worker"}, worker_loads(source, s, on), {}, memory, *pages};
      for (wire::Load& w : remote.loads) w.stores_pages = *pages != nullptr, w.salt = prefixes_.salt();
      remote.replaced = [&told, id](size_t, const std::string& why) {
        if (api::Services* s = told) s->worker_restarts++;
        note(format("a worker of {} was lost ({}); another one continues its answers", id, why));
      };
      auto loaded = load_remote_model(id, source, std::move(remote));
      // A failure of the first model ends the server with that error.
      if (const api::Services* s = told; !loaded && s && s->ready)
        note(format("{} cannot be loaded: {}", id, loaded.error().message));
      return loaded;
    };
    options.grows = [&](const std::string& id) {
      const Placed* own = place_of(id);
      return own ? !own->section.has_context : engine_.context == 0;
    };
    options.preset = [&](const std::string& id) {
      const Placed* own = place_of(id);
      return own ? own->section.preset : nullptr;
    };
    if (*all) {
      const std::string folder = url_models_folder();
      options.library = std::make_unique<ModelLibrary>(folder.empty() ? "" : folder + "/.described");
      options.open = [&](const std::string& path) {
        auto file = open_model_file(path, file_options(engine_));
        if (!file) note(file.error().message);  // no client learns the path
        return file;
      };
    }
    options.names = std::move(*names);
    auto models = LoadedModels::create(std::move(files), std::move(options));
    if (!models) return models.error();
    for (const Placed& p : *placed)
      if (!(*models)->name_of(p.section.model))
        return Error{
            Code::Usage,
            format("[model.{}]: this server has no model of this name", gimbal::quoted(p.section.model)),
            "`gimbal list` shows names; a file has its name without .gguf"};
    api::Services services{**models, GIMBAL_VERSION, backends_text};
    services.reasoning_budget = reasoning_budget_;
    if (slot_save_path_) services.slot_save_path = *slot_save_path_, services.slots.keep_texts();
    services.pages = *pages;
    services.reload_backends = [&] { return reload_backends(**models); };
    if (auto ok = certificates_.apply(services); !ok) return ok.error();
    told = &services;
    const Status served = service.run(**models, services);
    services.pulls.end();
    models->reset();  // running requests still report to `services`
    if (!served) return served.error();
    return kDone;
  }

 private:
  static constexpr const char* kNoProjector = "none";

  // By path of the model. Only of models that the command line names.
  std::map<std::string, std::string> projectors_beside(const std::vector<ModelFile>& files) const {
    std::map<std::string, std::string> all;
    for (const ModelFile& file : files) {
      if (std::string found = projector_beside(file); !found.empty()) all.emplace(file.path, found);
    }
    return all;
  }

  // By a libllama. The built-in model is kept as a file for it.
  Result<ServedModelPtr> load_in_library(const std::string& id, const ModelFile& source,
                                         const CommonOptions& options, const LoadSettings& s) {
    const LoadSettings none;
    if (auto ok = check_library_options(
            options,
            {{"--parallel", s.parallel != none.parallel},
             {"--cache-tokens", s.cache_tokens != none.cache_tokens},
             {"--queue", s.queue != none.queue},
             {"--draft", !s.model.draft.empty() && s.model.draft != "off" && s.model.draft != "auto"},
             {"--mmproj", !s.model.mmproj.empty()}});
        !ok)
      return ok.error();
    auto chosen = choose_library(options, *source.file);
    if (!chosen) return chosen.error();
    const auto at = library_paths_.find(id);
    if (at == library_paths_.end()) {
      auto path = ModelPath::of(source);
      if (!path) return path.error();
      library_paths_.emplace(id, std::move(*path));
    }
    auto loaded = load_library_model(id, source, library_paths_.at(id).path(), *chosen);
    if (loaded && !quiet) note(format("{}: {}", id, (*loaded)->kernels()[0].why));
    return loaded;
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

  // A model with settings of its own.
  struct Placed {
    ModelSection section;
    ServingOptions serving;
    std::vector<std::string> devices;  // as of worker_devices()
  };
  Result<std::vector<Placed>> sections(int models) const {
    std::vector<Placed> all;
    auto sections = sections_.read(engine_, load_, workers_);
    if (!sections) return sections.error();
    for (ModelSection& s : *sections) {
      s.settings.models = models;
      auto serving = serving_options(s.settings);
      if (!serving) return serving.error();
      if (quiet) serving->planned = {};
      auto devices = worker_devices(s.workers, s.engine);
      if (!devices) return devices.error();
      all.push_back({std::move(s), std::move(*serving), std::move(*devices)});
    }
    return all;
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

  // The devices of workers; "": chosen by the other options. No items: this process computes.
  static Result<std::vector<std::string>> worker_devices(const std::optional<std::string>& workers,
                                                         const CommonOptions& engine) {
    if (!workers) return std::vector<std::string>{""};
    if (*workers == "none") return std::vector<std::string>{};
    if (engine.backend != "auto" || engine.device || engine.split_list)
      return Error{Code::Usage, "--workers chooses the devices, and so do --backend, --device and --split",
                   "give only one of them"};
    const std::vector<std::string> all = split(*workers, ',');
    for (const std::string& one : all)
      if (!DeviceLocation::parse(one))
        return Error{
            Code::Usage, format("--workers: {} is not a device", gimbal::quoted(one)),
            "write devices with commas between, such as cpu,cuda:0,cuda:1; `gimbal backends` lists them"};
    return all;
  }

  std::vector<wire::Load> worker_loads(const ModelFile& source, const LoadSettings& settings,
                                       const std::vector<std::string>& devices) const {
    std::vector<wire::Load> all;
    for (const std::string& device : devices) {
      wire::Load w{source.path.empty() ? "default" : source.path, settings, 0, quiet, http_.log_json};
      if (const auto at = DeviceLocation::parse(device)) {
        w.settings.devices.backend = at->backend;
        if (at->backend != kHostBackend) w.settings.devices.device = at->index;
      }
      // So many processes count the same memory as free.
      w.settings.together = int(std::count(devices.begin(), devices.end(), device));
      all.push_back(std::move(w));
    }
    return all;
  }

  std::vector<std::string> models_, aliases_;
  std::map<std::string, ModelPath> library_paths_;  // by model
  std::optional<std::string> workers_;
  std::optional<int> keep_alive_;
  bool all_models_ = false;
  ModelSections sections_;
  std::optional<std::string> slot_save_path_;
  PrefixStoreOptions prefixes_;
  int reasoning_budget_ = -1;
  HttpOptions http_;
  ServedCertificateOptions certificates_;
  LoadOptions load_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<Serve>(); }

}  // namespace gimbal
