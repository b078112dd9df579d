// Models before they are loaded: their files, placement and memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gimbal/device.h"

namespace gimbal::v1 {

// A model file on this machine.
struct LocalModel {
  std::string name;    // for Engine::load()
  std::string source;  // "this folder", "GIMBAL_MODELS", "Hugging Face", "gimbal", "Ollama", "LM Studio"
  std::string path;
  uint64_t bytes = 0;  // of its first file
};

// Bytes of one memory.
struct PlannedMemory {
  std::string device;    // its id; empty: the host's memory, including the use by devices
  uint64_t weights = 0;  // in the device's layout
  uint64_t cache = 0;    // keys and values, and other state, of all sequences
  uint64_t activations = 0;
  uint64_t step = 0;      // inputs of one step
  uint64_t output = 0;    // logits, or embeddings
  uint64_t scratch = 0;   // of its programs
  uint64_t sessions = 0;  // of the host: tokens and samplers
  uint64_t total = 0;
  uint64_t free = 0;  // when the plan was made
};

struct ModelPlan {
  std::string name, architecture;
  uint64_t file_bytes = 0;
  int layers = 0, vocabulary = 0;
  int context = 0, trained_context = 0;  // positions
  int batch = 0, sequences = 0;
  std::string cache_type;
  bool cache_rotated = false;         // ModelOptions::cache_rotation
  std::string cache_rotation_reason;  // why it is, or is not
  std::vector<Placement> placement;
  std::vector<Fallback> fallbacks;
  std::vector<PlannedMemory> memory;  // of each device; the last entry is the host's
  std::string draft_model;            // makes the drafts; empty: none
  std::vector<PlannedMemory> draft_memory;
  std::vector<PlannedMemory> image_memory;  // of the encoder of pictures, at the largest one; empty: none
  bool fits = false;
  Error misfit;  // if it does not fit: OutOfMemory, with the changes that would help
};

// Kernels rejected for an op, by reason.
struct RejectedKernels {
  std::string why;
  std::vector<std::string> kernels;
};

// The choice of a kernel, for all ops that are computed alike.
struct KernelChoice {
  std::string op, format, device, kernel, why;  // "mat_mul", "q8_0", "cpu:0", "cpu.avx2.mat_mul.q8_0", ...
  std::vector<RejectedKernels> rejected;
};

struct ExplainedOp {
  std::string name, output;  // of its result: "blk.0.attn_q", and its shape
  size_t choice = 0;         // an index of Explanation::choices
};

// The ops of one step, in order.
struct ExplainedProgram {
  std::string purpose;  // "generation", "prompt"
  int rows = 0;         // tokens of a step
  std::vector<ExplainedOp> ops;
};

struct Explanation {
  ModelPlan plan;
  double weight_bytes_per_token = 0;  // read from memory
  std::vector<ExplainedProgram> programs;
  std::vector<KernelChoice> choices;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
