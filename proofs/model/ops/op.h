// A constant of src/ops/op.h, whose tables the model checker cannot read. scripts/check/proofs.py compares
// both.
#pragma once

namespace gimbal {

inline constexpr int kPagePositions = 64;

}  // namespace gimbal
