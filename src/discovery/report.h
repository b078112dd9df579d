// Reports on backends and devices of this machine, with reasons for those that are unavailable: produced by
// discovery, used by selection, and shown to users as text and JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/backends.h"

namespace gimbal {

class Device;

struct DeviceReport {
  int index = 0;                        // of the backend
  std::string id, name;                 // "cuda:0", "NVIDIA H200"
  uint64_t memory_total = 0;            // bytes; 0: unknown
  std::optional<uint64_t> memory_free;  // bytes; nullopt if the driver does not report it
  std::string compute_capability;  // "9.0", "gfx942", "Vulkan 1.3"; this and the next two: empty if unknown
  std::string pci_id;              // "0000:3b:00.0", lower case; devices with equal ids are one card
  std::string driver;              // "NVIDIA 550.54.15"
  std::string features;            // names, separated by commas
  bool unified_memory = false;     // shares memory with the host: an integrated device
  bool software = false;           // emulates a GPU on the CPU
  uint32_t threads = 0;            // host threads for computing; 0 for devices with their own cores
  uint64_t kernels = 0;
  uint64_t named_kernels = 0;  // the set of those that it can compute: NamedKernels of named_kernels.h
  std::string duplicate_of;    // id of the same card under a backend that is earlier in the order
};

// Of an open device. `index`: of the device in its backend.
DeviceReport report_of(const Device&, int index);

// A device that exists, but cannot be opened or fails the trial of its queue.
struct DeviceRefusal {
  int index = 0;
  std::string reason, message, remedy;  // as in BackendReport
};

struct BackendReport {
  std::string backend;
  bool present = false;     // linked, or its plugin was found
  bool available = false;   // has a device that opens and passes the trial of its queue (examine())
  std::string reason;       // why unavailable: one of device/reason.h; empty if available
  std::string message;      // the same as a sentence; empty if available
  std::string remedy;       // what to do; may be empty
  std::string library;      // the plugin's file; empty if linked
  bool remembered = false;  // an earlier result; the backend was not probed again
  std::string seen;         // age of a cached negative result: see remembered_answers.h
  std::vector<DeviceReport> devices;
  std::vector<DeviceRefusal> refused;
  std::vector<std::string> depends;  // inputs of the result (depends.h); empty: unknown
};

// "CUDA", "ROCm", ...; unknown names unchanged.
std::string display_name(const std::string& backend);

// The hardware that gimbal was tested on with this backend: "NVIDIA H100". Empty: never on any, but on
// software devices or emulators. nullopt: a backend that gimbal does not know.
std::optional<std::string> tested_hardware(const std::string& backend);

// The error in one line, followed by its remedy in parentheses.
std::string in_full(const std::string& message, const std::string& remedy);

// Devices with equal PCI ids are one card. Marks all but the first as its duplicates, by `order` (names of
// backends), then by list position.
void mark_duplicates(std::vector<BackendReport>&, const std::vector<std::string>& order);

// Serialization of a BackendReport, sent by a probing process. The sender runs a driver that may be broken,
// so the bytes are treated as hostile input.
inline constexpr size_t kMaxReportBytes = 1 << 20;
inline constexpr size_t kMaxProbedDevices = 256;
inline constexpr size_t kMaxDepends = 2048;  // longer lists are not sent at all

std::string encode(const BackendReport&);

// The size of the message with this beginning; 0: not known yet; nullopt if it is no message.
std::optional<size_t> message_bytes(std::string_view begin);
// nullopt if the message is incomplete, has trailing bytes, or contradicts itself. Control characters in
// texts become spaces; ids are derived from name and index rather than read.
std::optional<BackendReport> decode(std::string_view message);

}  // namespace gimbal
