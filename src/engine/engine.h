// From the user's options to a running model: DeviceChooser opens devices and places the layers, Loader
// verifies and loads, and the engine continues on the next best device when one is lost. All front ends use
// this class.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/device_chooser.h"
#include "runtime/embedding.h"

namespace gimbal {

// The result of replacing a backend's code.
struct Reloaded {
  struct Code {
    std::string plugin;  // its file; empty: part of the program, or none
    std::string build;   // its build id; empty: it was never opened
  };
  std::string backend;
  Code before, now;
  bool draining = false;             // models still use the old code; it is unloaded with the last of them
  std::vector<std::string> devices;  // opened by the new code
  size_t kernels = 0;                // verified on these devices before the exchange; 0 with Verify::Never
};

// Not thread-safe. Devices and models may outlive it.
class Engine {
 public:
  // `registry` outlives the engine and all that it opens.
  Engine(Registry& registry, EngineOptions options, EventSink events = {});
  Engine(const Engine&) = delete;

  const EngineOptions& options() const { return options_; }
  RunOptions& run() { return options_.run; }

  // As DeviceChooser; verified only when a model is planned or loaded.
  Result<OpenedDevice> open_device() { return chooser_.open_device(); }
  Result<std::unique_ptr<Device>> open_host() { return chooser_.open_host(); }
  // As Loader, on the chosen devices.
  Result<PlannedModel> plan(const ModelFile& source) { return loader_.plan(source); }
  Result<PlannedModel> plan_verified(const ModelFile& source) { return loader_.plan_verified(source); }
  Result<PlannedModel> plan_measured(const ModelFile& source) { return loader_.plan_measured(source); }
  Result<LoadedModelPtr> load(const ModelFile& source) { return loader_.load(source); }

  // Recovery for work on the model `on`: loads it on the next best device, once for all of its users, and
  // sets `on` to the new model. Errors: `lost` itself under strict or if no other device can replace the
  // lost one; those of load().
  OnDeviceLost on_device_lost(LoadedModelPtr& on);
  // As gimbal::embed(). When the device is lost, computes the remaining texts on the next best one; `on` as
  // above. Errors: those of both.
  Status embed(LoadedModelPtr& on, std::span<const std::vector<int32_t>> texts, const EmbedSettings&,
               const EmbeddingSink&);

  // Replaces the code of a backend by the plugin in this file; the plugin names its backend. Loaded models
  // keep running on the old code; models loaded later use the new code. Before the exchange, a child
  // process queries the plugin's devices, and every kernel is verified on each of them. Devices and kernels
  // of this backend that were unusable get another try with the new code. Errors, which change nothing:
  // NoBackend with the reason (device/reason.h); Failed when an event cancelled it.
  Result<Reloaded> reload_backend(const std::string& plugin);

  // Devices and kernels that this engine no longer uses, with the reasons.
  const std::vector<Unusable>& unusable() const { return record_.unusable; }

 private:
  Status replace(LoadedModelPtr& on, const Error& lost, const MoveTo& move);
  Status verify_code(const LibraryPtr&, const BackendReport&, Reloaded&);

  Registry& registry_;
  EngineOptions options_;
  DeviceRecord record_;
  DeviceChooser chooser_;
  Loader loader_;
};

}  // namespace gimbal
