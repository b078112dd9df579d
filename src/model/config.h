// The hyperparameters of a model, from a file's metadata: those of all architectures, and those of
// attention. Others are read where they are used (Recorder::hyper).
#pragma once
#include <string>

#include "base/result.h"
#include "files/metadata.h"
#include "files/tensor_table.h"
#include "model/hyperparameters.h"

namespace gimbal {

struct Config {
  std::string arch;  // general.architecture
  int layers = 0;
  int left_out = 0;    // further layers of the file, which are not computed
  int width = 0;       // of the residual stream
  int vocabulary = 0;  // rows of the embedding table
  int context = 0;     // positions that the model was trained on
  float norm_epsilon = 0;
  // Of attention; 0 without attention. If layers differ, the largest.
  int heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  int rotated = 0;  // rotated values of a head
  double rope_base = 0;
};

// The fields that every file has. Errors: Malformed, with the key, its value and the expected one.
// `patches`: of an encoder of pictures, which has no table of tokens; its vocabulary is 1.
Result<Config> read_config(const Metadata&, const TensorTable&, bool patches = false);
// Heads and rotation.
void read_attention(Hyperparameters&, Config&);

}  // namespace gimbal
