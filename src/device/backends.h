// All backends available to this program: the linked ones, and plugins in folders. Locates them, opens each
// on first use, and can replace one while the program runs.
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/library.h"

namespace gimbal {

// Generated per executable (cmake/backends.cmake), null-terminated.
using LinkedBackends = const gimbal_backend_entry*;
LinkedBackends linked_backends();

// All known backends, including ones that this program lacks, in the order of automatic choice.
inline constexpr const char* kBackendOrder[] = {
#define GIMBAL_KNOWN_BACKEND(id, name, ...) name,
#include "device/backends.def"
#undef GIMBAL_KNOWN_BACKEND
};

// Compares the plugin's backend with its file name. Errors: NoBackend with Error::reason broken-plugin.
Status check_name(const Library& plugin, const std::string& name);

// Thread-safe.
class Backends {
 public:
  // Searches the folders for libgimbal-backend-<name>.so; the first one wins, and a linked backend precedes
  // any file. Only file names are read; a missing folder counts as empty.
  explicit Backends(const std::vector<std::string>& folders, LinkedBackends linked = linked_backends());

  // kBackendOrder, then all others that were linked or found.
  std::vector<std::string> names() const;

  struct Source {
    std::string name;
    std::string path;  // of the plugin; empty when linked or not present
    bool linked = false;
    bool present = false;  // linked, or its file was found
  };
  Source source(const std::string& name) const;

  // The backend's code, opened on first use; the outcome is cached. Errors: not-built, and those of
  // Library::open.
  Result<LibraryPtr> library(const std::string& name);

  struct Exchange {
    Source before;
    std::string build_before;  // build id of the old code; empty: never opened
    bool draining = false;     // devices still use the old code: closing the last one unloads it
    LibraryPtr now;
  };
  // Replaces a backend by the plugin in `path`: opens it, checks the contract and calls `validate` (optional,
  // e.g. conformance cases). library() then returns the new one; open devices keep the old one until they are
  // closed. On any failure the old one stays. The plugin's own table names the backend.
  Result<Exchange> reload(const std::string& path, const std::function<Status(const LibraryPtr&)>& validate);

 private:
  struct Entry {
    Source source;
    LibraryPtr library;
    std::optional<Error> error;  // of the first use
  };
  Entry* find(const std::string& name);

  mutable std::mutex mutex_;
  std::mutex reloading_;  // one exchange at a time, so that the last one to begin is the one that stays
  std::vector<Entry> entries_;
};

}  // namespace gimbal
