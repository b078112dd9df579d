#include "apps/serving/model_loading.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/options/library_options.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/folders.h"
#include "base/text.h"
#include "engine/picture_input.h"
#include "server/remote_model.h"

namespace gimbal {
namespace {

constexpr const char* kNoProjector = "none";

bool names_projector(const ModelSettings& s) {
  const std::string& file = s.settings.model.mmproj;
  return !file.empty() && file != kNoProjector;
}

Result<std::vector<std::string>> worker_devices(const std::optional<std::string>& workers,
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

Result<ModelSettings> completed(ModelSection section, int models, bool quiet) {
  section.settings.models = models;
  auto serving = serving_options(section.settings);
  if (!serving) return serving.error();
  if (quiet) serving->planned = {};
  auto devices = worker_devices(section.workers, section.engine);
  if (!devices) return devices.error();
  return ModelSettings{std::move(section), std::move(*serving), std::move(*devices)};
}

std::vector<wire::Load> worker_loads(const ModelFile& source, const LoadSettings& settings,
                                     const std::vector<std::string>& devices, const SharedByModels& shared) {
  std::vector<wire::Load> all;
  for (const std::string& device : devices) {
    wire::Load w{source.path.empty() ? "default" : source.path, settings, 0, shared.quiet, shared.log_json};
    if (const auto at = DeviceLocation::parse(device)) {
      w.settings.devices.backend = at->backend;
      if (at->backend != kHostBackend) w.settings.devices.device = at->index;
    }
    // So many processes count the same memory as free.
    w.settings.together = int(std::count(devices.begin(), devices.end(), device));
    w.stores_pages = shared.pages != nullptr, w.salt = shared.salt;
    all.push_back(std::move(w));
  }
  return all;
}

}  // namespace

Result<ServedSettings> ServedSettings::read(const CommonOptions& engine, const LoadOptions& load,
                                            const std::optional<std::string>& workers,
                                            const ModelSections& sections, int models, bool quiet) {
  auto settings = load_settings(load, engine);
  if (!settings) return settings.error();
  ModelSection common;
  common.settings = std::move(*settings), common.engine = engine, common.workers = workers;
  common.has_context = engine.context != 0;
  auto of_all = completed(std::move(common), models, quiet);
  if (!of_all) return of_all.error();
  ServedSettings all;
  all.common_ = std::move(*of_all);
  auto own = sections.read(engine, load, workers);
  if (!own) return own.error();
  for (ModelSection& s : *own) {
    auto of_one = completed(std::move(s), models, quiet);
    if (!of_one) return of_one.error();
    all.sections_.push_back(std::move(*of_one));
  }
  return all;
}

const ModelSettings& ServedSettings::of(const std::string& id) const {
  for (const ModelSettings& s : sections_)
    if (s.model == id || s.model == id + ":latest" || s.model + ":latest" == id) return s;
  return common_;
}

ModelLoading::ModelLoading(ServedSettings settings, SharedByModels shared)
    : settings_(std::move(settings)),
      shared_(std::move(shared)),
      memory_(std::make_shared<MemoryReservations>()),
      itself_(memory_->worker("", false)) {
  // A baseline: the memory of this process before it loads a model (--workers none).
  itself_->is_process(getpid());
  itself_->plans({});
}

Result<std::unique_ptr<ModelLoading>> ModelLoading::create(ServedSettings settings,
                                                           const std::vector<ModelFile>& files,
                                                           bool all_models, SharedByModels shared) {
  if (names_projector(settings.common()) && (files.size() > 1 || all_models))
    return Error{Code::Usage, "--mmproj is the projector of one model, and several are served",
                 "put it into the section [model.NAME] of its model, in the file of --config"};
  std::unique_ptr<ModelLoading> self(new ModelLoading(std::move(settings), std::move(shared)));
  for (const ModelFile& file : files)
    if (std::string found = projector_beside(file); !found.empty())
      self->projectors_.emplace(file.path, std::move(found));
  return self;
}

bool ModelLoading::takes_pictures() const {
  const auto& own = settings_.sections();
  return !projectors_.empty() || names_projector(settings_.common()) ||
         std::any_of(own.begin(), own.end(), names_projector);
}

// Its path; empty: the model has none.
std::string ModelLoading::projector_of(const ModelSettings& s, const ModelFile& source) const {
  if (names_projector(s)) return s.settings.model.mmproj;
  const auto at = projectors_.find(source.path);
  if (!s.settings.model.mmproj.empty() || at == projectors_.end()) return "";
  if (!shared_.quiet) note(format("{} takes pictures by {}, which is beside it", source.name, at->second));
  return at->second;
}

Result<ServedModelPtr> ModelLoading::load(const std::string& id, const ModelFile& source, int context) {
  const ModelSettings& s = settings_.of(id);
  if (in_library(s.engine)) return load_in_library(id, source, s);
  std::string projector = projector_of(s, source);
  return s.devices.empty() ? load_here(id, source, s, context, std::move(projector))
                           : load_in_workers(id, source, s, context, std::move(projector));
}

// The built-in model is kept as a file for the library.
Result<ServedModelPtr> ModelLoading::load_in_library(const std::string& id, const ModelFile& source,
                                                     const ModelSettings& s) {
  const LoadSettings none;
  const std::string& draft = s.settings.model.draft;
  if (auto ok =
          check_library_options(s.engine, {{"--parallel", s.settings.parallel != none.parallel},
                                           {"--cache-tokens", s.settings.cache_tokens != none.cache_tokens},
                                           {"--queue", s.settings.queue != none.queue},
                                           {"--draft", !draft.empty() && draft != "off" && draft != "auto"},
                                           {"--mmproj", !s.settings.model.mmproj.empty()}});
      !ok)
    return ok.error();
  auto chosen = choose_library(s.engine, *source.file);
  if (!chosen) return chosen.error();
  std::string path;
  {
    const std::lock_guard lock(paths_mutex_);
    auto at = library_paths_.find(id);
    if (at == library_paths_.end()) {
      auto made = ModelPath::of(source);
      if (!made) return made.error();
      at = library_paths_.emplace(id, std::move(*made)).first;
    }
    path = at->second.path();
  }
  auto loaded = load_library_model(id, source, path, *chosen);
  if (loaded && !shared_.quiet) note(format("{}: {}", id, (*loaded)->kernels()[0].why));
  return loaded;
}

Result<ServedModelPtr> ModelLoading::load_here(const std::string& id, const ModelFile& source,
                                               const ModelSettings& s, int context, std::string projector) {
  const auto turn = memory_->turn_to_load();
  ServingOptions o = s.serving;
  o.memory = memory_, o.mmproj = std::move(projector);
  o.pages = shared_.pages, o.salt = shared_.salt, o.lora = shared_.lora;
  if (context) o.engine.run.context = context;
  return load_local_model(backend_registry(), id, source, o, stderr_sink(shared_.quiet));
}

Result<ServedModelPtr> ModelLoading::load_in_workers(const std::string& id, const ModelFile& source,
                                                     const ModelSettings& s, int context,
                                                     std::string projector) {
  LoadSettings settings = s.settings;
  if (context) settings.model.context = context;
  settings.model.mmproj = std::move(projector);
  RemoteOptions remote{{program_path(), "worker"},
                       worker_loads(source, settings, s.devices, shared_),
                       {},
                       memory_,
                       shared_.pages};
  remote.replaced = [this, id](size_t, const std::string& why) {
    if (api::Services* services = services_) services->worker_restarts++;
    note(format("a worker of {} was lost ({}); another one continues its answers", id, why));
  };
  auto loaded = load_remote_model(id, source, std::move(remote));
  // A failure of the first model ends the server with that error.
  if (const api::Services* services = services_; !loaded && services && services->ready)
    note(format("{} cannot be loaded: {}", id, loaded.error().message));
  return loaded;
}

}  // namespace gimbal
