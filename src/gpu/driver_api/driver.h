// A vendor's driver, loaded at run time: NVIDIA's libcuda or AMD's libamdhip64 behind one table of functions.
// All differences are data in a Vendor; the code exists once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/driver_api/text_compiler.h"
#include "gpu/runtime.h"

namespace gimbal::gpu::driver_api {

struct Gpu;

enum class Api : uint8_t { Cuda, Hip };

// A row of errors.def for one driver.
struct KnownError {
  int number;
  const char* name;  // empty: this driver has no such error
  Failure::Code code;
  const char* meaning;
};

struct Vendor {
  Api api;
  // A vendor's own columns of functions.def and errors.def, so that a program with one vendor contains no
  // text of the other. The function names are in table order; empty: missing in this driver.
  const char* const* functions;
  std::span<const KnownError> errors;
  const char* name;              // of the interface: "CUDA"
  const char* maker;             // "NVIDIA"
  const char* const* libraries;  // file names to try, ends with nullptr
  const char* get_driver;        // remedy if there is no driver
  const char* no_device;         // remedy if the driver finds no device
  int oldest_version;            // in the driver's numbering
  const char* update_driver;
  int integrated_attribute;  // device attribute: shares memory with the host
  std::string (*version_text)(int);
  // Returns the kernels built for a device, or why there are none; called once, when it is opened.
  Failure (*kernels_for)(const Gpu&, std::span<const KernelCode>*);
  // The kernels that use a device's matrix units; empty if it has none.
  std::span<const KernelCode> (*matrix_kernels_for)(const Gpu&);
  // Those of the tensor library, for devices that kernels_for accepts.
  std::span<const KernelCode> (*tensor_kernels_for)(const Gpu&);
  // Texts that a program brings: their frame, their compiler, and its options for a device.
  std::span<const KernelCode> (*text_kernels)();
  TextCompiler compiler;
  std::vector<std::string> (*compiler_options)(const Gpu&);
};

template <class>
struct Entry;
template <class... A>
struct Entry<int(A...)> {
  int (*call)(A...) = nullptr;  // nullptr: missing in the library
  const char* symbol = "";
};

struct Functions {
#define FUNCTION(name, cuda, hip, ...) Entry<int(__VA_ARGS__)> name;
#define OPTIONAL(name, cuda, hip, ...) Entry<int(__VA_ARGS__)> name;
#define CUDA_ONLY(name, cuda, ...) Entry<int(__VA_ARGS__)> name;
#define HIP_ONLY(name, hip, ...) Entry<int(__VA_ARGS__)> name;
#include "gpu/driver_api/functions.def"
#undef FUNCTION
#undef OPTIONAL
#undef CUDA_ONLY
#undef HIP_ONLY
};

// A device's properties before its first use.
struct Gpu {
  int handle = 0;
  std::string name, driver;
  std::string address;       // on the PCI bus: "0000:17:00.0"
  std::string architecture;  // AMD: "gfx90a", without the feature suffix after the colon
  int major = 0, minor = 0;  // NVIDIA: compute capability
  uint64_t memory = 0;
  bool unified = false;
};

struct Driver {
  const Vendor* vendor = nullptr;
  std::string library;  // the loaded file
  Functions functions;
  int version = 0;
  int devices = 0;
  bool graphs = false;  // all functions for graphs exist
};

// Loads the library (`path`, or if empty each of the vendor's names; it stays loaded) and enumerates its
// devices. Failures have the reason and, after a line break, the remedy: no library, not a driver, too old,
// no device.
Failure open_driver(const Vendor&, const std::string& path, Driver* out);
Failure examine(const Driver&, int index, Gpu* out);

// Turns a driver's error number into a Failure: meaning, failed function, name and number. 0 gives no
// failure.
Failure failure_of(const Vendor&, const char* symbol, int error);

}  // namespace gimbal::gpu::driver_api
