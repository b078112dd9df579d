// The kernel table of every GPU backend: one row per kernel and format, named after the backend.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/abi.h"
#include "gpu/launches.h"

namespace gimbal::gpu {

struct Row {
  gimbal_kernel_info info;  // first: the engine's view of a row
  const char* kernel;       // in kernels.def
  Plan plan;
};

struct Rows {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<std::string>> names;                 // referenced by rows[].info.name
  std::vector<std::unique_ptr<std::vector<gimbal_limit>>> limits;  // likewise, of kernel texts
};
// `matrix_units`: also those of gpu/matrix/kernels.def. `tensors`: also those of the tensor library.
Rows make_rows(const std::string& backend, bool matrix_units, bool tensors);

}  // namespace gimbal::gpu
