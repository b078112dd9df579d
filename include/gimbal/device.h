// Devices and kernels, and the reasons for and against each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gimbal/error.h"

namespace gimbal::v1 {

// A device. Its free memory is that of the moment of the query.
struct Device {
  std::string id;                              // "cuda:1"
  std::string backend;                         // "cuda"
  std::string name;                            // "NVIDIA H200"
  std::string driver;                          // "NVIDIA 550.54.15"; empty: unknown
  uint64_t memory_total = 0, memory_free = 0;  // bytes; 0: unknown
  std::string compute_capability;              // "9.0", "gfx942", "Vulkan 1.3", "OpenCL 3.0"; empty: unknown
  bool unified_memory = false;                 // shares the host's memory
  bool software = false;                       // emulates a GPU on the CPU
};

struct Backend {
  std::string name;
  bool available = false;  // has a device that can be opened
  Error why_not;           // if it is not available: reason, message, remedy
  std::vector<Device> devices;
};

// A requested or preferred device, kernel or file that could not be used, and its replacement.
struct Fallback {
  std::string what;     // "cuda", "metal:0", "cpu.avx2.mat_mul.q8_0"
  std::string instead;  // the id of a device; empty: several, or none yet
  Error why;
};

// Layers of a model on one device.
struct Placement {
  std::string device;  // its id
  int first_layer = 0, layers = 0;
  bool embedding = false, head = false;  // holds the embedding table; the output norm and head
  std::string why;
  // Tensors that DeviceSettings::override_tensor, cpu_moe and n_cpu_moe bring here, and take from its layers.
  int moved_in = 0, moved_out = 0;
};

// A kernel of a device, with its op and formats.
struct Kernel {
  std::string name, device;  // "cpu.avx2.mat_mul.q8_0", "cpu:0"
  std::string variant;       // its instruction set or feature level
  std::string op;            // "mat_mul"
  int rank = 0;              // of the kernels that fit an op, the highest rank computes it
  bool exact = false;        // sums in the reference order
  std::vector<std::string> input, second_input, output;  // number formats that it takes and gives
  std::string limits;                                    // for people: "k a multiple of 32, rows from 8"
  std::string needs;                                     // features of the device that it needs; empty: none
  std::string missing;  // those of them that this device lacks; empty: it can run
};

// Ops of one kind that one kernel computed for one reason.
struct ReceiptLine {
  std::string op, format, device, kernel, why;  // "mat_mul", "q8_0", "cpu:0", "cpu.avx2.mat_mul.q8_0", ...
  int ops = 0;                                  // in the model
  uint64_t runs = 0;                            // of all of them, counted by the device
  std::string not_counted;                      // why `runs` is unknown; empty: it is known
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
