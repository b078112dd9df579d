// The code of a backend: linked into this program, or a plugin that was opened at run time and is let go with
// the last of its users.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "device/abi.h"

namespace gimbal {

// Shared, for a reload must not take the code away from devices that still compute: each open device holds
// its library, and the last one to be closed unloads an old one.
class Library {
 public:
  // Opens a plugin and checks that it keeps the contract of abi.h. Nothing of a file that is no library for
  // this machine is ever run. Errors (with Error::reason): plugin-missing, broken-plugin, library-missing,
  // symbol-missing, abi-mismatch.
  static Result<std::shared_ptr<const Library>> open(const std::string& path);
  // A backend that is part of this program; it must keep the contract (Device::open checks it).
  static std::shared_ptr<const Library> linked(gimbal_backend_entry);

  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // As long as this header says, whatever the plugin's own length: what it does not have is NULL.
  const gimbal_backend& table() const { return table_; }
  const std::string& name() const { return name_; }          // "vulkan"
  const std::string& path() const { return path_; }          // of the plugin's file; empty when linked
  const std::string& build_id() const { return build_id_; }  // differs whenever the code does
  const std::string& compiler() const { return compiler_; }

 private:
  Library() = default;

  void* handle_ = nullptr;
  int file_ = -1;  // see library.cpp
  gimbal_backend table_{};
  std::string name_, path_, build_id_, compiler_;
};

using LibraryPtr = std::shared_ptr<const Library>;

}  // namespace gimbal
