// Which device to use. Pure: decides on reports alone, so that every rule can be tested without a device.
//
// The automatic order is cuda > rocm > metal > vulkan > opencl > webgpu > cpu, and can be changed. Among
// GPUs, cards of their own come before integrated ones, whatever their shared memory; then the order decides;
// then, within a backend, the larger memory. Devices that emulate a GPU are slower than the CPU backend: they
// come last, and only where they were allowed. What was asked for by name comes before all of it. Every "no"
// is kept, with its reason.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "discovery/report.h"

namespace gimbal {

// Why a device, or a whole backend, was not taken.
struct Rejection {
  std::string what;                     // "cuda:1"; "cuda" when none of its devices came into question
  std::string reason, message, remedy;  // as in Error
  std::string seen = {};  // when, if it is a remembered answer that a look at the device may change

  std::string backend() const { return what.substr(0, what.find(':')); }
  std::string sentence() const;  // "cuda: why not (what to do)"
  Error error() const;           // of code NoBackend
};

// All of them with semicolons between, each worded by `sentence`. If several are not part of this build,
// they are last and share a sentence: "cuda, rocm are not in this build".
std::string in_one_line(const std::vector<Rejection>&, std::string (*sentence)(const Rejection&));

// What is not used any more, since it failed in this run: a device, or one kernel of it.
struct Unusable {
  std::string device;  // "cuda:1"
  std::string kernel;  // empty: all of the device
  Error why;
};
Rejection rejection(const Unusable&);  // of a device

struct SelectionRequest {
  std::string backend = "auto";  // or the name of the one wanted
  std::optional<int> device;    // its number there; for "auto", on the first backend that has a usable device
  bool strict = false;          // the one wanted, or none
  bool allow_software = false;  // devices that emulate a GPU
  uint64_t bytes = 0;           // that must be free on the device; 0: unknown
  std::vector<std::string> order;  // of backends; those of kBackendOrder that are missing come behind
  std::vector<Rejection> failed;   // devices that were tried already, and did not open or gave wrong numbers
};

struct DeviceChoice {
  std::string backend;
  int index = 0;
  std::string why;                  // this one
  std::vector<Rejection> rejected;  // what would have come before it, in that order
  std::vector<Rejection> unwanted;  // those of `rejected` that were asked for: each must be shown to the user
  std::string id() const;           // "cuda:0"
};

// `order` in full: what it leaves out follows in the usual order.
std::vector<std::string> full_order(const std::vector<std::string>& order);

// A device number that its backend does not have; nothing when the number is right or the backend cannot be
// had.
std::optional<Error> wrong_number(const std::vector<BackendReport>&, const SelectionRequest&);

// Errors: NoBackend when nothing can be used, OutOfMemory when that is for want of memory only; both with
// every reason. A device number that the backend does not have is an error, never a fallback.
Result<DeviceChoice> choose_device(const std::vector<BackendReport>&, const SelectionRequest&);

}  // namespace gimbal
