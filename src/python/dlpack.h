// The binary forms of DLPack 1.1, which libraries exchange tensors in
// (https://dmlc.github.io/dlpack/latest/c_api.html): the first one, and the one with a version and flags.
#pragma once
#include <cstdint>

namespace gimbal::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCudaHost = 3 };
enum TypeCode : uint8_t { kInt, kUInt, kFloat, kBFloat = 4, kBool = 6, kFloat8E4M3 = 10, kFloat8E5M2 = 12 };
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint32_t kMajor = 1, kMinor = 1;

struct View {
  void* data;
  struct {
    int32_t type, number;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } type;
  int64_t *dims, *strides;  // in elements; null strides: row-major
  uint64_t byte_offset;
};
struct First {
  View view;
  void* owner;
  void (*end)(First*);
};
struct Versioned {
  uint32_t major, minor;
  void* owner;
  void (*end)(Versioned*);
  uint64_t flags;
  View view;
};

// Names of capsules; a consumer renames one to "used_...", and calls `end` later.
template <class Form>
inline constexpr const char* kName = "dltensor";
template <>
inline constexpr const char* kName<Versioned> = "dltensor_versioned";
template <class Form>
inline constexpr const char* kUsedName = "used_dltensor";
template <>
inline constexpr const char* kUsedName<Versioned> = "used_dltensor_versioned";

}  // namespace gimbal::python::dlpack
