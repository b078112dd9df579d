// The code of a backend: linked into this program, or a plugin opened at run time and unloaded with its last
// user.
#pragma once
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "device/abi.h"

namespace gimbal {

// Reference-counted, because a reload must not unload code that devices still run: each open device holds its
// library, and closing the last one unloads an old one.
class Library {
 public:
  // Opens a plugin and checks the contract of abi.h. Files that are no library for this machine are rejected
  // before any of their code runs. Errors (with Error::reason): plugin-missing, broken-plugin,
  // library-missing, symbol-missing, abi-mismatch.
  static Result<std::shared_ptr<const Library>> open(const std::string& path);
  // A backend linked into this program; Device::open checks its contract.
  static std::shared_ptr<const Library> linked(gimbal_backend_entry);

  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // With this header's size, regardless of the plugin's: missing entries are NULL.
  const gimbal_backend& table() const { return table_; }
  const std::string& name() const { return name_; }          // "vulkan"
  const std::string& path() const { return path_; }          // of the plugin; empty if linked
  const std::string& build_id() const { return build_id_; }  // changes with every build
  const std::string& compiler() const { return compiler_; }

 private:
  Library() = default;

  void* handle_ = nullptr;
  int file_ = -1;  // see library.cpp
  gimbal_backend table_{};
  std::string name_, path_, build_id_, compiler_;
};

using LibraryPtr = std::shared_ptr<const Library>;

// Checks that a file is a complete library for this machine: the dynamic loader trusts the file that it maps
// and crashes if it is truncated.

// Checks the ELF header, program headers and section headers. Errors: Failed with a predicate to append to
// the file's name ("is for another processor ...").
Status check_elf_library(Bytes file);

// The linker's build id of a program or library: it distinguishes builds of one version.

// Hex digits of the GNU build id of the loaded object that
// contains `address`; empty if it has none.
std::string build_id_of(const void* address);

}  // namespace gimbal
