// File names of GPU makers' libraries on each system (vendor_libraries.def).
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace gimbal {

enum class System : unsigned char { Linux, MacOs, Windows };

#if defined(_WIN32)
inline constexpr System kThisSystem = System::Windows;
#elif defined(__APPLE__)
inline constexpr System kThisSystem = System::MacOs;
#else
inline constexpr System kThisSystem = System::Linux;
#endif

struct VendorLibrary {
  std::string_view backend;
  bool compiles;  // kernel texts; false: the driver, or the loader of drivers
  System system;
  const char* file;
};

inline constexpr VendorLibrary kVendorLibraries[] = {
#define DRIVER(backend, system, file) {#backend, false, System::system, file},
#define COMPILER(backend, system, file) {#backend, true, System::system, file},
#include "base/vendor_libraries.def"
#undef DRIVER
#undef COMPILER
};

using VendorLibraryFiles = std::array<const char*, 8>;  // ends with nullptr

// Computed by the compiler, so that a program with one backend has no names of the others.
consteval VendorLibraryFiles vendor_files(std::string_view backend, bool compiles, System system) {
  VendorLibraryFiles all{};
  size_t n = 0;
  for (const VendorLibrary& l : kVendorLibraries)
    if (l.backend == backend && l.compiles == compiles && l.system == system) all.at(n++) = l.file;
  return all.back() ? throw "too many names" : all;
}
consteval VendorLibraryFiles driver_files(std::string_view backend, System system = kThisSystem) {
  return vendor_files(backend, false, system);
}
consteval VendorLibraryFiles compiler_files(std::string_view backend, System system = kThisSystem) {
  return vendor_files(backend, true, system);
}

}  // namespace gimbal
