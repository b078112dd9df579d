// The options that every command which computes shares, and what they mean to the device and the runtime.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/arguments.h"
#include "discovery/registry.h"
#include "runtime/blueprint.h"

namespace gimbal {

struct EngineOptions {
  std::string backend = "auto";
  std::optional<int> device;
  std::vector<std::optional<int>> named_device;  // --cuda-device and the like, by backend_names()
  std::optional<std::string> backend_order;      // "vulkan,cuda"
  std::optional<int> gpu_layers;
  std::optional<std::string> split;  // "cpu=4,cuda:0=rest"
  bool strict = false, allow_software_devices = false;
  bool look_again = false;  // see DeviceRequest
  std::vector<std::string> prefer_kernel;
  std::string numerics = "exact";
  std::optional<int> threads, context, batch;
  std::optional<std::string> cpu_variant;
  std::string kv_type = "f16";
  std::string verify = "auto";                         // or "always", "never"
  std::vector<std::pair<std::string, Error>> refused;  // ids of devices that failed in this run, and how
};

// Whether a command has a context and a batch to set, or only chooses a device.
enum class Needs { Device, Model };
void declare(Arguments&, EngineOptions&, Needs);

// --allow-software-devices and --backend-order, for a command that decides and opens nothing.
void declare_choice(Arguments&, bool& allow_software_devices, std::optional<std::string>& order);
// Errors: Usage for a name that is none.
Result<std::vector<std::string>> backend_order(const std::optional<std::string>& list);

// Errors: Usage for options that contradict each other or name what this version does not have.
Result<RunOptions> run_options(const EngineOptions&);

// Opens the device and tells, on stderr, every fallback and every option that has no effect on it (notes:
// unless `quiet`). Errors: those of open_device(); Usage for a CPU variant that does not exist; NoBackend
// under --strict when a wish cannot be had.
Result<OpenedDevice> open_device(const EngineOptions&, bool quiet);

// Why this device, without what is wrong with all the others (`gimbal backends` tells that).
std::string short_reason(const OpenedDevice&);

}  // namespace gimbal
