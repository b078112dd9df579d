// From a user's wishes to a model that runs: DeviceChooser opens devices and places the layers, Loader
// verifies and loads, and the engine continues on the next best device when one is lost. Every front end uses
// this one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/device_chooser.h"
#include "runtime/embedding.h"

namespace gimbal {

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

  // As DeviceChooser; verified only when a model is planned or loaded.
  Result<OpenedDevice> open_device() { return chooser_.open_device(); }
  Result<std::unique_ptr<Device>> open_host() { return chooser_.open_host(); }
  // As Loader, on the devices that are chosen.
  Result<PlannedModel> plan(const ModelFile& source) { return loader_.plan(source); }
  Result<PlannedModel> plan_verified(const ModelFile& source) { return loader_.plan_verified(source); }
  Result<LoadedModelPtr> load(const ModelFile& source) { return loader_.load(source); }

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
