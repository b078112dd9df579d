// The options that every command which computes shares, and what they mean to the engine.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/shared/arguments.h"
#include "engine/find_model.h"
#include "engine/options.h"

namespace gimbal {

struct CommonOptions {
  std::string backend = "auto";
  std::optional<int> device;
  std::vector<std::optional<int>> named_device;  // --cuda-device and the like, by backend_names()
  std::optional<std::string> backend_order;      // "vulkan,cuda"
  std::optional<int> gpu_layers;
  std::optional<std::string> split;  // "cpu=4,cuda:0=rest"
  bool strict = false, allow_software_devices = false;
  std::vector<std::string> prefer_kernel;
  std::string numerics = "exact";
  std::optional<int> threads, context, batch;
  std::optional<std::string> cpu_variant;
  std::optional<int> limit_megabytes;  // of memory that bench measures a CPU's speed with
  std::string kv_type = "f16";
  std::optional<std::string> kernel_config;  // how BitNet's weights lie (files/ternary_layout.h)
  std::vector<std::string> lora;             // adapters, as "FILE" or "FILE:SCALE"
  std::string verify = "auto";               // or "always", "never"
  std::string packed = "auto";               // or "on", "off"
};

// Whether a command has a context and a batch to set, or only chooses a device.
enum class Needs { Device, Model };
void declare(Arguments&, CommonOptions&, Needs);

// --kernel-config
void declare_kernel_config(Arguments&, std::optional<std::string>& choice);

// --allow-software-devices and --backend-order, for a command that decides and opens nothing.
void declare_choice(Arguments&, bool& allow_software_devices, std::optional<std::string>& order);
// Errors: Usage for a name that is none.
Result<std::vector<std::string>> backend_order(const std::optional<std::string>& list);

// Errors: Usage for options that contradict each other or make no sense.
Result<EngineOptions> engine_options(const CommonOptions&);
ModelFileOptions file_options(const CommonOptions&);

}  // namespace gimbal
