// The role of a tensor in the rules of mixtures, by its name.
#pragma once
#include <cstdint>

#include "files/tensor_table.h"

namespace gimbal {

enum class TensorRole : uint8_t {
  Output,
  Embedding,
  Value,
  Key,
  Query,
  AttentionOutput,
  Up,
  Gate,
  Down,
  Other
};
TensorRole role_of(std::string_view name);

// Vectors, norms, small matrices and those that choose experts keep their format in every mixture.
bool is_quantizable(const StoredTensor&);

// The number in "blk.7.attn_v.weight"; -1 without one.
int layer_of(std::string_view name);

}  // namespace gimbal
