// How `gimbal serve` loads its models: with which settings, on which devices, and in this process, in workers
// or in a library.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/options/library_options.h"
#include "apps/options/serving_options.h"
#include "apps/serving/model_path.h"
#include "engine/loader.h"
#include "server/api/api.h"
#include "server/model.h"
#include "workers/memory_reservations.h"

namespace gimbal {

// The settings of one model: those of the command line, or of its section [model.NAME] over them.
struct ModelSettings : ModelSection {
  ServingOptions serving;
  // A worker for each; "": on the device that the other options choose. Empty: this process computes.
  std::vector<std::string> devices;
};

class ServedSettings {
 public:
  // `models`: how many the command line names; they share the devices. Errors: Usage; those of
  // engine_options().
  static Result<ServedSettings> read(const CommonOptions&, const LoadOptions&,
                                     const std::optional<std::string>& workers, const ModelSections&,
                                     int models, bool quiet);
  // `id`: the model's name in the APIs.
  const ModelSettings& of(const std::string& id) const;
  const ModelSettings& common() const { return common_; }
  const std::vector<ModelSettings>& sections() const { return sections_; }

 private:
  ModelSettings common_;
  std::vector<ModelSettings> sections_;
};

struct SharedByModels {
  std::shared_ptr<PageStore> pages;  // the prefix store; nullptr: none
  std::string salt;                  // of its keys
  std::vector<Lora> lora;
  bool log_json = false, quiet = false;
};

// Thread-safe after its creation.
class ModelLoading {
 public:
  // `files`: the models that the command line names. Errors: Usage if one projector is given for several
  // models.
  static Result<std::unique_ptr<ModelLoading>> create(ServedSettings, const std::vector<ModelFile>& files,
                                                      bool all_models, SharedByModels);

  bool takes_pictures() const;
  // `context`: tokens that a request asks for; 0: as the settings say. Errors: those of the place where it
  // is loaded.
  Result<ServedModelPtr> load(const std::string& id, const ModelFile& source, int context);
  const ServedSettings& settings() const { return settings_; }
  // Counts replaced workers there; until then the server has not started, and its error says what failed.
  void reports_to(api::Services& services) { services_ = &services; }

 private:
  ModelLoading(ServedSettings, SharedByModels);
  std::string projector_of(const ModelSettings&, const ModelFile& source) const;
  Result<ServedModelPtr> load_in_library(const std::string& id, const ModelFile& source,
                                         const ModelSettings&);
  Result<ServedModelPtr> load_here(const std::string& id, const ModelFile& source, const ModelSettings&,
                                   int context, std::string projector);
  Result<ServedModelPtr> load_in_workers(const std::string& id, const ModelFile& source, const ModelSettings&,
                                         int context, std::string projector);

  const ServedSettings settings_;
  const SharedByModels shared_;
  std::map<std::string, std::string> projectors_;  // that lie beside models, by the model's path
  const std::shared_ptr<MemoryReservations> memory_;
  const std::unique_ptr<MemoryReservations::Worker> itself_;  // this process
  std::mutex paths_mutex_;
  std::map<std::string, ModelPath> library_paths_;  // by model
  std::atomic<api::Services*> services_{nullptr};
};

// A served model that a libllama computes, in a process of its own.

// `model_path`: of the file, for the library. Errors: those of the library, and of the file's tokenizer and
// template.
Result<ServedModelPtr> load_library_model(std::string id, const ModelFile& source, std::string model_path,
                                          ChosenLibrary);

}  // namespace gimbal
