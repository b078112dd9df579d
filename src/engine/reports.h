// The memory, placement and kernels of a plan, as plain data that outlives plan and devices: for command
// lines, servers, their workers and other languages. engine/explanation.h writes them as JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/receipt.h"
#include "runtime/model_plan.h"

namespace gimbal {

// A device that computes a model, or its drafts.
struct DeviceUse {
  std::string device;  // its id: "cpu:0"
  bool host = false;   // this machine's CPU, which needs no driver
  uint64_t bytes = 0;  // of its memory that the model takes
};
std::vector<DeviceUse> device_uses(const ModelPlan&);

// Memory of one device that a plan takes, in bytes.
struct DeviceMemory {
  std::string device;  // its id
  MemoryPlan plan;
  uint64_t total = 0;  // of the device
};
struct HostUse {  // of this machine, in bytes
  uint64_t sessions = 0, total = 0, free = 0;
};
struct MemoryReport {
  std::vector<DeviceMemory> devices;
  HostUse host;
};
MemoryReport memory_report(const ModelPlan&);
MemoryPlan memory_of_devices(const ModelPlan&);  // of all together

// Consecutive layers on one device.
struct PlacedLayers {
  std::string device;    // its id
  std::string contents;  // "the embedding and layers 0 to 3"
  int first_layer = 0, layers = 0;
  bool embedding = false, head = false;  // holds the embedding table; the output norm and head
  int moved_in = 0, moved_out = 0;       // tensors that rules bring here, and take from its layers
  std::string packed;                    // the file of its mapped weights; empty: none
  std::string reason;                    // may be empty: the only device
};
std::vector<PlacedLayers> placement(const ModelPlan&);

// The number of ops of a bucket's programs for each kernel, over all stages, in the order of the kernels'
// first use.
struct KernelCount {
  std::string op, device, kernel;
  int ops = 0;
};
std::vector<KernelCount> count_kernels(const ModelPlan&, size_t bucket);

// Kernels rejected for one op, by reason, in the order of `rejections`.
struct RejectedKernels {
  std::string why;
  std::vector<std::string> kernels;
};
std::vector<RejectedKernels> by_reason(const std::vector<Rejected>& rejections, const Device&);

// The rule that moved an op from its layer's device (RunOptions::tensor_rules): "'cpu_moe'"; empty: none did.
std::string moved_by(const ModelPlan&, const Bucket&, size_t op);

// One op of a program, and the choice of its kernel.
struct ExplainedOp {
  std::string op, name;             // "mat_mul"; of its output
  std::vector<std::string> inputs;  // their shapes
  std::string output;               // its shape
  std::string device, kernel, why;
  std::vector<std::pair<std::string, std::string>> rejected;  // kernel and reason, best rank first
  std::string moved = {};                                     // moved_by()
};
std::vector<ExplainedOp> explain_ops(const Device&, const Program&, const std::vector<Choice>&,
                                     const KernelPreference&);

// A plan before anything is loaded. The front end fills in the texts: `reason` of the placement,
// `fallbacks` and `remedy`.
struct PlanReport {
  std::string model, architecture;
  uint64_t file_bytes = 0;
  int context = 0, trained_context = 0, batch = 0;  // tokens
  std::string kv_type;
  RotationChoice kv_rotation;
  MemoryReport memory;
  uint64_t host_per_session = 0;  // bytes
  std::string draft_model;        // empty: no model drafts
  MemoryReport draft_memory;
  std::vector<PlacedLayers> placement;
  std::vector<std::string> fallbacks;
  bool fits = false;
  std::string remedy;  // if the model does not fit
};
PlanReport plan_report(const std::string& model, const ModelPlan&);

}  // namespace gimbal
