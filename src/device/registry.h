// The backends that this program holds, and opening a device by the user's words.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace gimbal {

// Generated per executable (cmake/backends.cmake), null-terminated.
using LinkedBackends = const gimbal_backend_entry*;
LinkedBackends linked_backends();

// All backends there are, whether or not this program holds them, in the order of automatic choice.
inline constexpr const char* kBackendOrder[] = {"cuda", "rocm", "metal", "vulkan", "opencl", "webgpu", "cpu"};

struct DeviceReport {
  int index = 0;
  std::string id, name, features;
  gimbal_device_info info{};  // the pointers inside are not kept: name and features hold the texts
  size_t kernels = 0;
};

struct BackendReport {
  std::string backend;
  bool available = false;
  std::string code;    // empty when available; else "not-built", "no-device", "open-failed"
  std::string reason;  // a sentence; empty when available
  std::string remedy;  // what to do; may be empty
  std::vector<DeviceReport> devices;
};

// What can be asked for by name: kBackendOrder, and behind it what this program holds besides: backends for
// tests, such as the emulator of GPUs, which are never chosen by themselves.
std::vector<std::string> backend_names();

// Every known backend with its devices or the reason why it has none, in the order of automatic choice.
std::vector<BackendReport> discover_backends();

struct DeviceRequest {
  std::string backend = "auto";  // or one of backend_names()
  int index = 0;
  bool strict = false;  // refuse instead of falling back
  std::string options;  // for the backend's open(), see abi.h
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string reason;  // why this one
  std::vector<std::string>
      fallbacks;  // what was asked for and could not be had; each must be shown to the user
};

// Opens the device asked for, or the best there is. Errors: NoBackend with every reason; Usage for an unknown
// name.
Result<OpenedDevice> open_device(const DeviceRequest&);

}  // namespace gimbal
