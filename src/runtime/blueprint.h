// What running a model will take, found from the file's header alone: the programs, the kernel of every op,
// and every byte of memory, on each device that holds a part of the model. Loading does what it says, and
// nothing more is allocated afterwards.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/arch.h"
#include "program/cut.h"
#include "program/place.h"
#include "runtime/leading.h"

namespace gimbal {

struct RunOptions {
  int context = 0;                // positions per sequence; 0: the model's own, at most 4096
  int batch = 256;                // rows of a prompt computed at once
  int logit_rows = 1;             // rows of one step that logits can be asked for
  int sequences = 1;              // conversations held at once
  DType cache_type = DType::F16;  // one of kCacheTypes (ops/shapes.h)
  KernelPreference kernels;
  int first_layers = 0;  // leaves out all layers behind these many, to try the others; 0: none
};

// Bytes on one device. The first five are what is allocated there, a buffer each; the sixth is what its
// programs take besides; the seventh is none of the device's, but the host's (memory_check.h).
struct MemoryPlan {
  uint64_t weights = 0, cache = 0, step = 0, activations = 0, output = 0;
  uint64_t scratch = 0, sessions = 0;
  uint64_t hand_over = 0;  // of `step` and `output`: what lies there on its way to or from another device
  uint64_t free = 0;       // on the device when the plan was made
  uint64_t total() const { return weights + cache + step + activations + output + scratch + sessions; }
};

// One program per bucket of rows: one row for generating, a batch for the prompt. They share weights, caches
// and memory.
struct Bucket {
  int rows;
  Program program;
  std::vector<Choice> choices;  // the kernel of every op, with reasons
  StepInputs step;              // the same offsets in every part
  uint64_t step_bytes = 0;      // of the step's own data; behind it lies what is handed over
  std::vector<HandOver> in;     // what earlier parts give to this one
  Value logits;                 // in the part with the output head
};

// Layers for one device, asked for. In a list, the first entry has the embedding table, too, and the last the
// output head; either may have 0 layers, and then holds only that.
struct Placement {
  const Device* device;  // outlives what is made of it
  int layers;
  std::string why;  // for people; may be empty
};

// Consecutive layers on one device.
struct Part {
  const Device* device;  // outlives the blueprint
  int first_layer = 0, layers = 0;
  bool embedding = false, head = false;  // holds the embedding table; the output norm and head
  std::string why;
  std::vector<Bucket> buckets;  // by rising rows; the last one holds options.batch
  MemoryPlan memory;
  std::vector<LeadingProgram> leading = {};  // by rising k; with the output head only
};
std::string contents(const Part&);  // "the embedding and layers 0 to 3"

struct Blueprint {
  const Gguf* file;  // outlives the blueprint
  Config config;
  RunOptions options;  // context filled in
  int pages_per_sequence = 0;
  std::vector<Part> parts;  // in the order in which a step passes them; at least one

  bool split() const { return parts.size() > 1; }
  // Where the output head is; of an undivided model, where everything is.
  const Part& last() const { return parts.back(); }
  const Device& device() const { return *last().device; }
  // Host memory that each session takes besides: a step's data for every part, logits, tokens, pages, and
  // what a sampler holds.
  uint64_t session_bytes() const;
};

// The whole model on one device. Errors: those of configure(); Unsupported ops or formats; Usage for options
// out of range.
Result<Blueprint> make_blueprint(const Gguf& file, const Device& device, const RunOptions& options);
// Its layers over a list of devices, in order; a device may come more than once. Entries in the middle with 0
// layers are left out. Errors: those above; Usage when the layers do not add up to the model's.
Result<Blueprint> make_blueprint(const Gguf& file, std::span<const Placement> where,
                                 const RunOptions& options);

}  // namespace gimbal
