// From a user's wishes to a model that runs: opens the device, places the layers, verifies both at first use,
// takes the next best device when one fails, and goes on when one is lost. Every front end uses this one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/events.h"
#include "engine/find_model.h"
#include "engine/options.h"
#include "engine/verification.h"
#include "program/receipt.h"
#include "runtime/device_lost.h"
#include "runtime/embedding.h"

namespace gimbal {

// What a model will run on. Members are in the order in which they depend on each other.
struct PlannedModel {
  ModelFile source;
  OpenedDevice opened;                          // the one that was asked for or chosen
  std::vector<std::unique_ptr<Device>> others;  // that hold a stage of the model, too, or may
  std::vector<Fallback> fallbacks;              // all of them, in the order in which they were found
  ModelPlan plan;
};

// With its weights on the devices. Members are in the order in which they depend on each other.
struct LoadedModel {
  ModelFile source;
  OpenedDevice opened;
  std::vector<std::unique_ptr<Device>> others;
  std::vector<Fallback> fallbacks;
  std::unique_ptr<Model> model;
  double load_seconds = 0;
  std::vector<ReceiptLine> at_start = {};       // what ran before the first prompt: the model's trial
  std::shared_ptr<LoadedModel> successor = {};  // that its sequences moved to when a device was lost

  // What ran since then.
  std::vector<ReceiptLine> receipt() const { return since(model->receipt(), at_start); }
};
using LoadedModelPtr = std::shared_ptr<LoadedModel>;
// Its model, which keeps all of it.
inline ModelPtr model_of(const LoadedModelPtr& on) { return {on, on->model.get()}; }

// What an exchange of a backend's code did.
struct Reloaded {
  struct Code {
    std::string plugin;  // its file; empty: part of the program, or there was none
    std::string build;   // its build id; empty: it was never opened
  };
  std::string backend;
  Code before, now;
  bool draining = false;  // models still compute with the code before; it leaves memory with the last of them
  std::vector<std::string> devices;  // that the new code opened
  size_t kernels = 0;                // of all of these, verified before the exchange; 0 with Verify::Never
};

// Not thread-safe. What it opened and loaded may outlive it.
class Engine {
 public:
  // `registry` outlives the engine and all that it opens.
  Engine(Registry& registry, EngineOptions options, EventSink events = {});
  Engine(const Engine&) = delete;

  const EngineOptions& options() const { return options_; }
  RunOptions& run() { return options_.run; }

  // The device asked for, or the best there is; verified only when a model is planned or loaded. Errors:
  // those of Registry::open; Usage for a CPU variant that there is none of; NoBackend under strict when a
  // setting cannot be had.
  Result<OpenedDevice> open_device();
  // The CPU, with the settings that are for it: what others fall back to and are compared with. Errors: those
  // of Registry::open.
  Result<std::unique_ptr<Device>> open_host();

  // Which devices hold which layers, from the file's header alone. What does not fit on a GPU goes to the CPU
  // layer by layer, which is a fallback unless gpu_layers is -1. Errors: those of open_device and
  // make_model_plan; Usage for a split that is none; OutOfMemory under strict in place of that fallback.
  Result<PlannedModel> plan(const ModelFile& source);
  // The same without the kernels that give wrong numbers here, and without devices that have none left: the
  // plan that load() carries out. Errors: NoBackend under strict in place of each of these.
  Result<PlannedModel> plan_verified(const ModelFile& source);
  // Loads the model and tries it out. A device that refuses memory it said was free, is lost, or computes
  // wrong is replaced by the next best. Errors: those of plan_verified and Model::load; under strict the
  // first.
  Result<LoadedModelPtr> load(const ModelFile& source);

  // Recovery for work on the model `on`: loads it on the next best device, once for everything that ran on
  // it, and then `on` is what it loaded. Engine and `on` outlive the result. Errors: `lost` itself under
  // strict or when nothing else can be lost; those of load().
  OnDeviceLost on_device_lost(LoadedModelPtr& on);
  // As gimbal::embed(). When the device is lost, the texts that the sink has not got are computed on the next
  // best one; `on` as above. Errors: those of both.
  Status embed(LoadedModelPtr& on, std::span<const std::vector<int32_t>> texts, const EmbedSettings&,
               const EmbeddingSink&);

  // Replaces the code of a backend by the plugin in this file, which names its backend itself. Models that
  // are loaded go on with the code they began with; what is loaded from now on gets the new one. Before the
  // exchange the plugin is asked for its devices, in a child process, and every kernel is verified on each.
  // What was found unusable of this backend is tried again with the new code. Errors, which change nothing:
  // NoBackend with the reason (device/reason.h); Failed when an event cancelled it.
  Result<Reloaded> reload_backend(const std::string& plugin);

  // What is not used any more by this engine, and why: devices, and kernels of devices.
  const std::vector<Unusable>& unusable() const { return unusable_; }

 private:
  DeviceRequest request() const;
  Result<OpenedDevice> open(const DeviceRequest&);
  Status check_settings(const OpenedDevice&);
  bool has_gpu_backend();
  Result<PlannedModel> plan_somewhere(const ModelFile&);
  Result<PlannedModel> plan_split(const ModelFile&);
  Result<PlannedModel> place(const ModelFile&, OpenedDevice&&);
  Status use_packed(PlannedModel&);
  Status refuse_packed(PlannedModel&, const std::string& path, const Error& why);
  Result<bool> verify(const PlannedModel&, bool anew);
  Result<PlannedModel> plan_measured(const ModelFile&);
  Result<LoadedModelPtr> load_once(PlannedModel&&);
  Status replace(LoadedModelPtr& on, const Error& lost, const MoveTo& move);
  Status verify_code(const LibraryPtr&, const BackendReport&, Reloaded&);
  // One more thing that is not used. Errors: NoBackend under strict.
  Status give_up(Unusable, Fallback::Kind);
  RunOptions run_options() const;  // without the kernels that are not used
  void tell_not_kept();
  bool emit(const Event&) const;

  Registry& registry_;
  EngineOptions options_;
  EventSink events_;
  FirstUse first_use_;
  std::vector<Unusable> unusable_;
  std::vector<MeasuredProduct> measured_;  // of the devices in `asked_`, and kept for the next start
  std::vector<std::string> asked_;         // devices whose measurements were looked up
  std::vector<Fallback> fallbacks_;        // that come with `unusable_`
  std::vector<std::string> told_;          // fallbacks of plans: each is told once
  bool told_not_kept_ = false;
  std::vector<Error> damaged_;  // files of packed weights that are not used any more: `value`, and why
};

}  // namespace gimbal
