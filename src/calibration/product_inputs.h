// Which values of a program enter its matrix products, before they are quantized.
#pragma once
#include <optional>
#include <vector>

#include "program/program.h"

namespace gimbal {

struct ProductInput {
  uint32_t tensor;                 // of the weight, as WeightSource::tensor
  int64_t matrix;                  // in the tensor; the first one of a product of several
  uint16_t values;                 // f32[columns, slots, rows], index into Program::values
  int64_t columns, slots;          // `slots`: vectors in a row of the value
  int64_t matrices = 1;            // that the product takes together: experts, heads
  std::optional<uint16_t> routes;  // f32[2 slots, rows]: the matrix of each slot is in the second half
};

// One for each product with a weight of the model's file. Parts of a matrix have one input, so only the part
// with its first row counts.
std::vector<ProductInput> product_inputs(const Program&);

}  // namespace gimbal
