// An estimate of the memory that a model takes, from its dimensions alone. Engine::plan() reads a file.
#pragma once
#include <cstdint>
#include <string>

#include "gimbal/error.h"

namespace gimbal::v1 {

// A transformer with RMS norms, grouped attention heads and a gated feed-forward layer.
struct ModelShape {
  int width = 0, ff_width = 0;  // of the residual stream; of the feed-forward layer
  int layers = 0, vocabulary = 0;
  int heads = 0, kv_heads = 0;  // kv_heads 0: as many as heads
  int head_width = 0;           // 0: width / heads
  bool tied_output = false;     // the embedding table is also the output head
  std::string weights = "q4_0";
  // As in ModelOptions.
  int context = 4096, batch = 256, sequences = 1;
  std::string cache_type = "f16";
};

// Bytes, on one device.
struct MemoryEstimate {
  uint64_t weights = 0, cache = 0, activations = 0, step = 0, output = 0;
  uint64_t total_bytes() const { return weights + cache + activations + step + output; }
  double total_gb() const { return double(total_bytes()) / 1e9; }
};

// Within 3 % for llama-like models. Errors: Usage for an unknown format and for a dimension below 0.
Result<MemoryEstimate> estimate_memory(const ModelShape&);

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
