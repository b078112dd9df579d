// What Reduce gives: the dtype of its results.
#pragma once
#include <optional>

#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {

// Sums and products of integers and bools are i64, places i32. nullopt: not defined for this dtype.
constexpr std::optional<DType> reduced_type(Reduction r, DType x) {
  const bool floats = has(kFloats, x), numbers = floats || has(kIntegers, x) || x == DType::Bool;
  switch (r) {
    case Reduction::Sum:
    case Reduction::Prod:
      if (!numbers) return std::nullopt;
      return floats ? x : DType::I64;
    case Reduction::Mean:
    case Reduction::Var:
      if (!floats) return std::nullopt;
      return x;
    case Reduction::Min:
    case Reduction::Max:
      if (!numbers) return std::nullopt;
      return x;
    case Reduction::ArgMin:
    case Reduction::ArgMax:
      if (!numbers) return std::nullopt;
      return DType::I32;
    case Reduction::Any:
    case Reduction::All:
      if (!numbers) return std::nullopt;
      return DType::Bool;
    case Reduction::Count: break;
  }
  return std::nullopt;
}

}  // namespace gimbal
