// Models in which most feed-forward layers have experts: the first ones may be dense, and beside a row's
// chosen experts there may be one for all rows.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

struct SparseLayers {
  int dense;  // layers without experts, the first ones
  Experts experts;
  int shared;  // width of the expert for all rows; 0: none
};
// leading_dense_block_count, read_experts(), and of the expert for all rows expert_shared_feed_forward_length
// or the width of expert_shared_count experts.
SparseLayers read_sparse(Recorder&, UsualRouting = {});
// The layer's mixture() plus glu() with the suffix "_shexp"; of a dense layer glu(). A limit above 0:
// activated().
Value sparse_feed_forward(Recorder&, const SparseLayers&, int layer, Value x, float shared_limit = 0);

}  // namespace gimbal::arch
