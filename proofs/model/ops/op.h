// Constants of src/ops/op.h, whose tables the model checker cannot read. scripts/check/proofs.py compares
// them.
#pragma once

namespace gimbal {

inline constexpr int kPagePositions = 64;
inline constexpr int kChunk = 256;

}  // namespace gimbal
