// Which devices hold which layers of a model, by a user's wishes and by what the machine has.
#pragma once
#include "engine/loader.h"

namespace gimbal {

// Not thread-safe.
class DeviceChooser final : public Devices {
 public:
  // All outlive it, and `registry` all that it opens.
  DeviceChooser(Registry& registry, const EngineOptions& options, DeviceRecord& record)
      : registry_(registry), options_(options), record_(record) {}

  // The device asked for, or the best there is. Errors: those of Registry::open; Usage for a CPU variant that
  // there is none of; NoBackend under strict when a setting cannot be had.
  Result<OpenedDevice> open_device();
  // With the settings that are for the CPU. Errors: those of Registry::open.
  Result<std::unique_ptr<Device>> open_host() override;
  // What does not fit on a GPU goes to the CPU layer by layer, which is a fallback unless gpu_layers is -1.
  // Errors: those of open_device and make_model_plan; Usage for a split that is none; OutOfMemory under
  // strict in place of that fallback.
  Result<PlannedModel> place(const ModelFile&) override;

 private:
  DeviceRequest request() const;
  Result<OpenedDevice> open(const DeviceRequest&);
  Status check_settings(const OpenedDevice&);
  bool has_gpu_backend();
  Result<PlannedModel> place_somewhere(const ModelFile&);
  Result<PlannedModel> place_split(const ModelFile&);
  Result<PlannedModel> place_on(const ModelFile&, OpenedDevice&&);

  Registry& registry_;
  const EngineOptions& options_;
  DeviceRecord& record_;
};

}  // namespace gimbal
