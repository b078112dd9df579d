// Chooses the devices of a model's layers, from the user's options and the hardware of this machine.
#pragma once
#include "engine/loader.h"

namespace gimbal {

// Not thread-safe.
class DeviceChooser final : public Devices {
 public:
  // All outlive the chooser; `registry` also outlives everything that it opens.
  DeviceChooser(Registry& registry, const EngineOptions& options, DeviceRecord& record)
      : registry_(registry), options_(options), record_(record) {}

  // The requested device, or the best one. Errors: those of Registry::open; Usage for an unknown CPU
  // variant; NoBackend under strict if a setting cannot be honoured.
  Result<OpenedDevice> open_device();
  // Opens the CPU with its settings. Errors: those of Registry::open.
  Result<std::unique_ptr<Device>> open_host() override;
  // Layers that do not fit on a GPU go to the CPU; that is a fallback unless gpu_layers is -1. Errors:
  // those of open_device and make_model_plan; Usage for an invalid split; OutOfMemory under strict in place
  // of that fallback.
  Result<PlannedModel> place(const ModelFile&) override;

 private:
  DeviceRequest request() const;
  Result<OpenedDevice> open(const DeviceRequest&);
  void add_tensors(OpenedDevice&);
  Status check_settings(const OpenedDevice&);
  bool has_gpu_backend();
  Result<PlannedModel> place_somewhere(const ModelFile&);
  Result<PlannedModel> place_split(const ModelFile&);
  Result<PlannedModel> place_on(const ModelFile&, OpenedDevice&&);
  // EngineOptions::overrides for this model; opens their devices into `others`. Errors: Usage for a pattern
  // that matches no tensor; NoBackend for a device that is not there; under strict, Usage for one without
  // effect.
  Result<std::vector<TensorRule>> tensor_rules(const ModelFile&, const Device& main,
                                               std::vector<std::unique_ptr<Device>>& others);
  Result<const Device*> device_of(const TensorOverride&, const Device& main,
                                  std::vector<std::unique_ptr<Device>>& others);
  Status without_effect(const TensorOverride&, const std::string& why);
  std::string devices_here();

  Registry& registry_;
  const EngineOptions& options_;
  DeviceRecord& record_;
};

}  // namespace gimbal
