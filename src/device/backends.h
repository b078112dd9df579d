// All backends that this program can use: the linked ones, and the plugins that lie in folders. Knows where
// each one is, opens it when it is first needed, and exchanges it while the program runs.
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

// All backends there are, whether or not this program has them, in the order of automatic choice.
inline constexpr const char* kBackendOrder[] = {
#define GIMBAL_KNOWN_BACKEND(id, name, shown) name,
#include "device/backends.def"
#undef GIMBAL_KNOWN_BACKEND
};

// A plugin is the backend that its file is called after. Errors: NoBackend with Error::reason broken-plugin.
Status check_name(const Library& plugin, const std::string& name);

// Thread-safe.
class Backends {
 public:
  // Looks for libgimbal-backend-<name>.so in the folders, the first one wins; a linked backend wins over any
  // file. Only file names are looked at; a folder that is not there is an empty one.
  explicit Backends(const std::vector<std::string>& folders, LinkedBackends linked = linked_backends());

  // kBackendOrder, then whatever else was linked or found.
  std::vector<std::string> names() const;

  struct Source {
    std::string name;
    std::string path;  // of the plugin; empty when linked or not present
    bool linked = false;
    bool present = false;  // linked, or its file was found
  };
  Source source(const std::string& name) const;

  // The backend's code, opened at first use; what came of that is remembered. Errors: not-built, and those of
  // Library::open.
  Result<LibraryPtr> library(const std::string& name);

  struct Exchange {
    Source before;
    std::string build_before;  // build id of the code before; empty: it was never opened
    bool draining = false;     // devices are open on it: the last one that is closed lets it go
    LibraryPtr now;
  };
  // Exchanges a backend for the plugin in `path`: opens it, checks the contract and calls `validate` (may be
  // empty; conformance cases, say). Then library() gives the new one, while devices that are open keep theirs
  // until they are closed. On any failure the old one stays. Which backend it is, its own table says.
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
