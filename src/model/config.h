// The numbers that shape a model, read from a file's metadata: one struct for all architectures.
#pragma once
#include <string>

#include "base/result.h"
#include "files/gguf.h"
#include "model/rope.h"
#include "ops/op.h"

namespace gimbal {

struct Config {
  std::string arch;  // general.architecture
  int layers = 0;
  int left_out = 0;  // layers of the file behind these, which are not computed
  int width = 0;     // of the residual stream
  int ff_width = 0;  // of the feed-forward layer
  int heads = 0, kv_heads = 0, head_dim = 0;
  int vocabulary = 0;  // rows of the embedding table
  int context = 0;     // positions that the model was trained on
  float norm_epsilon = 0;
  RopePairs rope_pairs = RopePairs::Adjacent;
  RopeAngles rope;
};

// The fields that all transformer files share. Errors: Malformed, naming the key, its value and what was
// expected.
Result<Config> read_config(const Gguf& file);

}  // namespace gimbal
