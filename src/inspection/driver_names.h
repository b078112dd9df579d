// Which file names are those of a GPU's driver, on any system.
#pragma once
#include <string_view>

namespace gimbal {

// A driver of base/vendor_libraries.def, on Linux in any version: "libcuda.so" as well as "libcuda.so.1".
bool is_driver_name(std::string_view file);

}  // namespace gimbal
