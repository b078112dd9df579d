// The rows of the tensor library in the table of a GPU backend.
#pragma once
#include <string>

#include "gpu/rows.h"

namespace gimbal::gpu {

void add_tensor_rows(Rows&, const std::string& backend);

}  // namespace gimbal::gpu
