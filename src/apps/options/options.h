// The options shared by all commands that compute, and their conversion to engine options.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/arguments.h"
#include "engine/options.h"
#include "engine/settings_table.h"

namespace gimbal {

// The public settings, and option texts that are parsed into some of them at the end.
struct CommonOptions : DeviceSettings, ModelOptions {
  std::vector<std::optional<int>> named_device;  // --cuda-device and the like, by backend_names()
  std::optional<std::string> order_list;         // "vulkan,cuda"
  std::optional<std::string> split_list;         // "cpu=4,cuda:0=rest"
  std::vector<std::string> lora_texts;           // "FILE" or "FILE:SCALE"
  std::optional<std::string> library;            // a libllama (apps/options/library_options.h)
  std::optional<int> limit_megabytes;            // memory for the measurement of a CPU's speed (bench)
};

// A name that --backend takes for commands that write texts.
inline constexpr const char* kLibraryBackend = "llama.cpp";

// Device: options that choose a device. Model: also context, batch and so on. Texts: also a library in place
// of gimbal's engine.
enum class Needs { Device, Model, Texts };
void declare(Arguments&, CommonOptions&, Needs);
// Declares one setting alone.
void declare(Arguments&, const EngineSetting&, CommonOptions&);
// --kernel-config
void declare_kernel_config(Arguments&, std::string& choice);

// --allow-software-devices and --backend-order, for commands that choose a device but open none.
void declare_choice(Arguments&, bool& allow_software_devices, std::optional<std::string>& order);
// Errors: Usage for an unknown backend.
Result<std::vector<std::string>> backend_order(const std::optional<std::string>& list);

// Parses the texts into settings. Errors: Usage for options that are invalid or contradict each other.
Result<DeviceSettings> device_settings(const CommonOptions&);
ModelOptions model_options(const CommonOptions&);
// Errors: those above; OutOfMemory if the stack is too small to compute.
Result<EngineOptions> engine_options(const CommonOptions&);
ModelFileOptions file_options(const CommonOptions&);

}  // namespace gimbal
