// Inputs that determine which GPUs the drivers of a Linux system show, for depends_on() (device/abi.h): a
// builder for its lines, and lines shared by several backends.
#pragma once
#include <string>

namespace gimbal::gpu {

// Device nodes of GPU drivers.
inline constexpr char kGpuNodes[] =
    "/dev/dri/*\n/dev/nvidia*\n/dev/kfd\n/dev/dxg\n/dev/accel/*\n/dev/mali*\n/dev/kgsl*\n";

// Lines for depends_on() that are computed at run time.
class Depends {
 public:
  explicit Depends(const char* lines) : text_(lines) {}

  // Adds the variable, and each entry of its colon-separated list with `below` appended (begins with '/', or
  // is empty); `otherwise`: the list if the variable is not set.
  Depends& places(const char* variable, const std::string& otherwise, const std::string& below);
  // Adds the variable, and each file or folder's contents in its colon-separated list.
  Depends& files(const char* variable);
  Depends& also(const char* lines);

  // The result of depends_on(), valid as long as this; nullptr if an input cannot be named, such as one
  // relative to the current working directory.
  const char* text() const { return complete_ ? text_.c_str() : nullptr; }

 private:
  template <class F>
  void each_place(const char* variable, const std::string& otherwise, F);

  std::string text_;
  bool complete_ = true;
};

// The inputs of Vulkan's loader and drivers.
Depends vulkan_depends();

}  // namespace gimbal::gpu
