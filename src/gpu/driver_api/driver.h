// A vendor's driver, opened at run time: NVIDIA's libcuda or AMD's libamdhip64, as one table of functions.
// What differs between the two is data, in a Vendor; the code is written once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/runtime.h"

namespace gimbal::simt::driver_api {

struct Gpu;

enum class Api : uint8_t { Cuda, Hip };

// A row of errors.def as one driver has it.
struct KnownError {
  int number;
  const char* name;  // empty: this driver has no such error
  Failure::Code code;
  const char* meaning;
};

struct Vendor {
  Api api;
  // A vendor's own columns of functions.def and errors.def, so that a program with one of them holds no word
  // of the other. The names of functions in their order; empty: not in this driver.
  const char* const* functions;
  std::span<const KnownError> errors;
  const char* name;              // of the interface: "CUDA"
  const char* maker;             // "NVIDIA"
  const char* const* libraries;  // file names that are tried, ends in nullptr
  const char* get_driver;        // what to do when there is none
  const char* no_device;         // what to look at when the driver sees no device
  int oldest_version;            // as the driver numbers them
  const char* update_driver;
  int integrated_attribute;  // of the device: shares its memory with the host
  std::string (*version_text)(int);
  // The kernels built for a device, or why there are none; called once, when it is opened.
  Failure (*kernels_for)(const Gpu&, std::span<const KernelCode>*);
};

template <class>
struct Entry;
template <class... A>
struct Entry<int(A...)> {
  int (*call)(A...) = nullptr;  // nullptr: the library has no such function
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

// What is known of a device before it is used.
struct Gpu {
  int handle = 0;
  std::string name, driver;
  std::string address;       // on the PCI bus: "0000:17:00.0"
  std::string architecture;  // AMD: "gfx90a", without the features behind a colon
  int major = 0, minor = 0;  // NVIDIA: compute capability
  uint64_t memory = 0;
  bool unified = false;
};

struct Driver {
  const Vendor* vendor = nullptr;
  std::string library;  // the file that was opened
  Functions functions;
  int version = 0;
  int devices = 0;
  bool graphs = false;  // all functions of recordings as graphs are there
};

// Opens the library (`path`, or where that is empty the vendor's names in turn; it stays loaded) and asks for
// its devices. Fails with the reason and, behind a line break, the remedy: no library, not a driver, too old,
// no device.
Failure open_driver(const Vendor&, const std::string& path, Driver* out);
Failure examine(const Driver&, int index, Gpu* out);

// A driver's error number as a Failure: what it means, which function gave it, its name and number. 0 gives
// none.
Failure failure_of(const Vendor&, const char* symbol, int error);

}  // namespace gimbal::simt::driver_api
