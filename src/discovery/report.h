// What is known of the backends and their devices on this machine, and why some cannot be had: what discovery
// finds, what selection decides on, and what people and JSON are shown.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/backends.h"

namespace gimbal {

struct DeviceReport {
  int index = 0;                        // among the devices of its backend
  std::string id, name;                 // "cuda:0", "NVIDIA H200"
  uint64_t memory_total = 0;            // bytes; 0: unknown
  std::optional<uint64_t> memory_free;  // bytes; nothing where the driver does not tell
  std::string compute_capability;       // "9.0", "gfx942"; this and the next two are empty where unknown
  std::string pci_id;                   // "0000:3b:00.0", lower case; equal ids are one card
  std::string driver;                   // "NVIDIA 550.54.15"
  std::string features;                 // names, with commas
  bool unified_memory = false;          // shares memory with the host: an integrated device
  bool software = false;                // emulates a GPU on the CPU
  uint32_t threads = 0;                 // host threads it computes with; 0 for devices with their own cores
  uint64_t kernels = 0;
  std::string duplicate_of;  // the id of the same card behind a backend that is earlier in the order
};

// A device that was counted, and cannot be opened.
struct DeviceRefusal {
  int index = 0;
  std::string reason, message, remedy;  // as in BackendReport
};

struct BackendReport {
  std::string backend;
  bool present = false;     // linked, or its plugin was found
  bool available = false;   // has a device that can be opened
  std::string reason;       // why not: one of device/reason.h; empty when available
  std::string message;      // the same as a sentence; empty when available
  std::string remedy;       // what to do; may be empty
  std::string library;      // the plugin's file; empty when linked
  bool remembered = false;  // it was seen earlier, and the backend was not asked again
  std::string seen;         // when, if it is a remembered answer: see remembered_answers.h
  std::vector<DeviceReport> devices;
  std::vector<DeviceRefusal> refused;
  std::vector<std::string> depends;  // what decides the answer, as depends.h reads it; empty: not known
};

// "CUDA", "ROCm", ...; other names as they are.
std::string display_name(const std::string& backend);

// The error in one line, with its remedy behind it in brackets.
std::string in_full(const std::string& message, const std::string& remedy);

// Equal PCI ids are one card: every one but the first, in the order of `order` (names of backends; then as
// listed), is marked as a duplicate of it.
void mark_duplicates(std::vector<BackendReport>&, const std::vector<std::string>& order);

}  // namespace gimbal
