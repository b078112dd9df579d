// What running a model will take, found from the file's header alone: the programs, the kernel of every op,
// and every byte of memory. Loading does what it says, and nothing more is allocated afterwards.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/registry.h"
#include "model/arch.h"
#include "program/place.h"

namespace gimbal {

struct RunOptions {
  int context = 0;                // positions per sequence; 0: the model's own, at most 4096
  int batch = 256;                // rows of a prompt computed at once
  int logit_rows = 1;             // rows of one step that logits can be asked for
  int sequences = 1;              // conversations held at once
  DType cache_type = DType::F16;  // one of kCacheTypes (ops/shapes.h)
  KernelPreference kernels;
};

struct MemoryPlan {
  uint64_t weights = 0, cache = 0, step = 0, activations = 0, output = 0;  // bytes on the device
  uint64_t free = 0;  // on the device when the plan was made
  uint64_t total() const { return weights + cache + step + activations + output; }
};

// One program per bucket of rows: one row for generating, a batch for the prompt. They share weights, caches
// and memory.
struct Bucket {
  int rows;
  Program program;
  std::vector<Choice> choices;  // the kernel of every op, with reasons
  StepInputs step;
  Value logits;
};

struct Blueprint {
  const Gguf* file;      // outlives the blueprint
  const Device* device;  // outlives the blueprint
  Config config;
  RunOptions options;  // context filled in
  int pages_per_sequence = 0;
  std::vector<Bucket> buckets;  // by rising rows; the last one holds options.batch
  MemoryPlan memory;
};

// Errors: those of configure(); Unsupported ops or formats; Usage for options out of range.
Result<Blueprint> make_blueprint(const Gguf& file, const Device& device, const RunOptions& options);

// OutOfMemory, with the numbers and what would help, when the plan exceeds what the device has free.
Status check_memory(const Blueprint&);

}  // namespace gimbal
