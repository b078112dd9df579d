// Device selection. A pure function of reports, so every rule can be tested without a device.
//
// The automatic order is cuda > rocm > metal > vulkan > opencl > webgpu > cpu, and
// can be changed. Discrete GPUs precede integrated ones regardless of shared memory;
// then the order decides; then, within a backend, the larger memory. Devices that
// emulate a GPU are slower than the CPU backend: they come last, and only if allowed.
// A request by name precedes all of this. Every rejection is kept with its reason.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "discovery/report.h"

namespace gimbal {

// Why a device or a whole backend was not chosen.
struct Rejection {
  std::string what;                     // "cuda:1"; "cuda" if none of its devices was a candidate
  std::string reason, message, remedy;  // as in Error
  std::string seen = {};                // when, for a cached result that a new probe may change

  std::string backend() const { return what.substr(0, what.find(':')); }
  std::string sentence() const;  // "cuda: reason (remedy)"
  Error error() const;           // of code NoBackend
};

// All rejections separated by semicolons, each formatted by `sentence`. Several backends that are not in this
// build share a sentence at the end: "cuda, rocm are not in this build".
std::string in_one_line(const std::vector<Rejection>&, std::string (*sentence)(const Rejection&));

// A device, or one of its kernels, that failed in this run and is no longer used.
struct Unusable {
  std::string device;  // "cuda:1"
  std::string kernel;  // empty: the whole device
  Error why;
};
Rejection rejection(const Unusable&);  // of a device

struct SelectionRequest {
  std::string backend = "auto";    // or the requested backend
  std::optional<int> device;       // its index there; for "auto", on the first backend with a usable device
  bool strict = false;             // no fallback
  bool allow_software = false;     // devices that emulate a GPU
  uint64_t bytes = 0;              // minimum free memory of the device; 0: unknown
  std::vector<std::string> order;  // of backends; missing ones of kBackendOrder follow
  std::vector<Rejection> failed;   // devices that failed to open or computed wrong results
};

struct DeviceChoice {
  std::string backend;
  int index = 0;
  std::string why;                  // reason for the choice
  std::vector<Rejection> rejected;  // devices that precede it, in order
  std::vector<Rejection> unwanted;  // requested ones among `rejected`: show each to the user
  std::string id() const;           // "cuda:0"
};

// The complete order: missing backends follow in the usual order.
std::vector<std::string> full_order(const std::vector<std::string>& order);

// The error for a device index that its backend does not have; nullopt if the index is valid or the backend
// is unavailable.
std::optional<Error> wrong_number(const std::vector<BackendReport>&, const SelectionRequest&);

// Errors: NoBackend if no device can be used, OutOfMemory if only memory is missing; both with every reason.
// An invalid device index is always an error, never a fallback.
Result<DeviceChoice> choose_device(const std::vector<BackendReport>&, const SelectionRequest&);

}  // namespace gimbal
