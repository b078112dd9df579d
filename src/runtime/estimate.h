// Estimates a model's memory from its dimensions alone, without a file. With a file, make_model_plan
// (runtime/model_plan.h) gives the exact bytes.
#pragma once
#include <cstdint>

#include "tensor/dtype.h"

namespace gimbal {

// A transformer as gimbal computes them: RMS norms, grouped attention heads, a gated feed-forward layer.
struct ModelDimensions {
  int layers = 0;
  int embedding = 0;  // width of the residual stream
  int heads = 0, kv_heads = 0, head_dim = 0;
  int ffn = 0;  // width of the feed-forward layer
  int vocabulary = 0;
  bool tied_output = false;           // the embedding table is the output head, too
  DType weights = DType::Q4_0;        // of all matrices; norms are f32
  int context = 4096, batch = 256;    // positions; rows of a prompt computed at once
  int sequences = 1, logit_rows = 1;  // as in RunOptions
  DType cache = DType::F16;
};

// Bytes on one device.
struct MemoryEstimate {
  uint64_t weights = 0, cache = 0, activations = 0, step = 0, output = 0;
  uint64_t total() const { return weights + cache + activations + step + output; }
};

// Within 3 % of the plan in total for every model of the reference data whose matrices share a format
// (estimate_test), and nearer for larger ones. Not counted: formats that take more memory on a device than
// in a file (codebook formats: 1.2 to 1.6 times, see packing/layout.h); biases. Dimensions below 0 count as
// 0.
MemoryEstimate estimate_inference_memory(const ModelDimensions&);

}  // namespace gimbal
