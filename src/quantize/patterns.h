// Formats by patterns of names.
#pragma once
#include <optional>
#include <vector>

#include "files/tensor_table.h"
#include "quantize/mixture.h"

namespace gimbal {

// For each tensor the format of the first pattern found in its name. Errors: Usage for a pattern that is
// none.
Result<std::vector<std::optional<DType>>> formats_by_name(const TensorTable&,
                                                          const std::vector<FormatOfNames>&);

}  // namespace gimbal
