// The options that every command which computes shares, and what they mean to the engine.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/shared/arguments.h"
#include "engine/settings.h"
#include "engine/settings_table.h"

namespace gimbal {

// The public settings, and texts of options that become some of them when all are read.
struct CommonOptions : DeviceSettings, ModelOptions {
  std::vector<std::optional<int>> named_device;  // --cuda-device and the like, by backend_names()
  std::optional<std::string> order_list;         // "vulkan,cuda"
  std::optional<std::string> split_list;         // "cpu=4,cuda:0=rest"
  std::vector<std::string> lora_texts;           // "FILE" or "FILE:SCALE"
  std::optional<int> limit_megabytes;            // of memory that bench measures a CPU's speed with
};

// Whether a command has a context and a batch to set, or only chooses a device.
enum class Needs { Device, Model };
void declare(Arguments&, CommonOptions&, Needs);
// One of them alone.
void declare(Arguments&, const EngineSetting&, CommonOptions&);
// --kernel-config
void declare_kernel_config(Arguments&, std::string& choice);

// --allow-software-devices and --backend-order, for a command that decides and opens nothing.
void declare_choice(Arguments&, bool& allow_software_devices, std::optional<std::string>& order);
// Errors: Usage for a name that is none.
Result<std::vector<std::string>> backend_order(const std::optional<std::string>& list);

// The settings with the texts read. Errors: Usage for options that contradict each other or make no sense.
Result<DeviceSettings> device_settings(const CommonOptions&);
ModelOptions model_options(const CommonOptions&);
// Errors: those above; OutOfMemory for a stack that is too small to compute.
Result<EngineOptions> engine_options(const CommonOptions&);
ModelFileOptions file_options(const CommonOptions&);

}  // namespace gimbal
