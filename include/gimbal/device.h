// Devices, and the reasons why one is used and another is not.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gimbal/error.h"

namespace gimbal::v1 {

// A device as it was when it was asked.
struct Device {
  std::string id;                              // "cuda:1"
  std::string backend;                         // "cuda"
  std::string name;                            // "NVIDIA H200"
  std::string driver;                          // "NVIDIA 550.54.15"; empty where unknown
  uint64_t memory_total = 0, memory_free = 0;  // bytes; 0: unknown
  bool software = false;                       // emulates a GPU on the CPU
};

struct Backend {
  std::string name;
  bool available = false;  // has a device that can be opened
  Error why_not;           // where it is not available: reason, message, remedy
  std::vector<Device> devices;
};

// Something better or asked for that is not used, and what is in its place.
struct Fallback {
  std::string what;     // "cuda", "metal:0", "cpu.avx2.mat_mul.q8_0"
  std::string instead;  // the id of a device; empty where several may be
  Error why;
};

// Layers of a model on one device.
struct Placement {
  std::string device;               // its id
  int first_layer = 0, layers = 0;  // 0 layers: only what the next two say
  bool embedding = false, head = false;
  std::string why;
};

// What ran: ops of one kind that one kernel computed for one reason.
struct ReceiptLine {
  std::string op, format, device, kernel, why;  // "mat_mul", "q8_0", "cpu:0", "cpu.avx2.mat_mul.q8_0", ...
  int ops = 0;                                  // in the model
  uint64_t runs = 0;                            // of all of them, as the device counted them
  std::string not_counted;                      // why `runs` is not known; empty: it is
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
