// What decides which GPUs the drivers of a Linux system show, for depends_on() (device/abi.h): how to write
// it, and what several backends have in common.
#pragma once
#include <string>

namespace gimbal::simt {

// Nodes through which drivers reach hardware.
inline constexpr char kGpuNodes[] =
    "/dev/dri/*\n/dev/nvidia*\n/dev/kfd\n/dev/dxg\n/dev/accel/*\n/dev/mali*\n/dev/kgsl*\n";

// Lines for depends_on() that are only known when the process runs.
class Depends {
 public:
  explicit Depends(const char* lines) : text_(lines) {}

  // The variable, and `below` (it begins with '/', or is empty) each place in its list with colons;
  // `otherwise`: where it is not set.
  Depends& places(const char* variable, const std::string& otherwise, const std::string& below);
  // The variable, and each file, or all of each folder, in its list with colons.
  Depends& files(const char* variable);
  Depends& also(const char* lines);

  // What depends_on() gives, valid as long as this: nullptr where a place cannot be named, such as one that
  // depends on the folder that the process runs in.
  const char* text() const { return complete_ ? text_.c_str() : nullptr; }

 private:
  template <class F>
  void each_place(const char* variable, const std::string& otherwise, F);

  std::string text_;
  bool complete_ = true;
};

// What Vulkan's loader and drivers look at.
Depends vulkan_depends();

}  // namespace gimbal::simt
