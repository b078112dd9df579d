#include "device/library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "device/contract.h"
#include "device/loader_lock.h"
#include "device/reason.h"

namespace gimbal {
namespace {

Error refused(const char* reason, std::string message, std::string remedy) {
  return {Code::NoBackend, std::move(message), std::move(remedy), reason};
}

// Copies the file to memory, for three reasons. The loader identifies libraries by name: for a new file of
// the same name it would return the old code, but each open descriptor has a name of its own. The loaded
// bytes are the checked bytes. And overwriting the file in place would change or truncate running code.
// Returns -1 and errno on failure.
int copy_in_memory(const char* name, Bytes bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  for (size_t done = 0; fd >= 0 && done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int why = errno;
      close(fd);
      errno = why;
      return -1;
    }
    done += size_t(n);
  }
  return fd;
}

std::string name_of(int fd) { return format("/proc/self/fd/{}", fd); }

// The loader's message without the descriptor's name.
Error loader_refused(const std::string& path, std::string said, int fd) {
  const std::string prefix = name_of(fd) + ": ";
  if (said.starts_with(prefix)) said.erase(0, prefix.size());
  const std::string message = format("the plugin {} cannot be loaded: {}", path, said);
  if (said.find("undefined symbol") != std::string::npos || said.find("version `") != std::string::npos)
    return refused(
        reason::kSymbolMissing, message,
        "it was built for other versions of its libraries: use the plugin that belongs to this system");
  if (said.find("cannot open shared object file") != std::string::npos)
    return refused(reason::kLibraryMissing, message, "install that library, or remove the plugin");
  return refused(reason::kBrokenPlugin, message, "install the plugin again, or remove it");
}

}  // namespace

Result<LibraryPtr> Library::open(const std::string& path) {
  const std::string whose = "the plugin " + path;
  auto mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.error().code == Code::NotFound
               ? refused(reason::kPluginMissing, format("{} does not exist", whose),
                         "install it, or name another one")
               : refused(reason::kBrokenPlugin, mapped.error().message, mapped.error().remedy);
  std::shared_ptr<Library> lib(new Library);
  lib->path_ = path;
  const size_t slash = path.rfind('/');
  lib->file_ = copy_in_memory(path.c_str() + (slash == std::string::npos ? 0 : slash + 1), mapped->bytes());
  if (lib->file_ < 0)
    return Error{Code::OutOfMemory, format("{} cannot be copied into memory: {}", whose, strerror(errno)), "",
                 reason::kNotEnoughMemory};
  const std::string copy = name_of(lib->file_);
  {
    auto checked = MappedFile::open(copy);
    if (!checked) return refused(reason::kBrokenPlugin, checked.error().message, checked.error().remedy);
    if (auto whole = check_elf_library(checked->bytes()); !whole)
      return refused(reason::kBrokenPlugin, format("{} {}", whose, whole.error().message),
                     "install the plugin for this machine again, or remove it");
  }
  gimbal_plugin_function entry = nullptr;
  {
    const LoaderLock loading;
    lib->handle_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle_) return loader_refused(path, dlerror(), lib->file_);
    entry = reinterpret_cast<gimbal_plugin_function>(dlsym(lib->handle_, GIMBAL_PLUGIN_SYMBOL));
  }
  if (!entry)
    return refused(reason::kSymbolMissing,
                   format("{} is a library, but not a gimbal plugin: it does not export {}", whose,
                          GIMBAL_PLUGIN_SYMBOL),
                   "name a file libgimbal-backend-<name>.so of this version of gimbal");
  const gimbal_plugin* plugin = nullptr;
  const gimbal_backend* table = nullptr;
  {
    // A plugin's function-local statics are registered for destruction on first use, under a lock of the C
    // library.
    const LoaderLock first_use;
    plugin = entry();
    if (auto s = check_plugin(plugin, whose); !s) return s.error();
    table = plugin->backend();
  }
  if (auto s = check_table(table, whose); !s) return s.error();
  lib->table_ = as_known_here(*table);
  lib->name_ = table->name;
  lib->build_id_ = plugin->build_id ? plugin->build_id : "";
  if (const std::string id = build_id_of(reinterpret_cast<const void*>(entry)); !id.empty())
    lib->build_id_ += (lib->build_id_.empty() ? "" : "-") + id;
  lib->compiler_ = plugin->compiler ? plugin->compiler : "";
  return LibraryPtr(std::move(lib));
}

LibraryPtr Library::linked(gimbal_backend_entry entry) {
  std::shared_ptr<Library> lib(new Library);
  const gimbal_backend& table = *entry();
  lib->table_ = as_known_here(table);
  lib->name_ = table.name;
  lib->build_id_ = build_id_of(reinterpret_cast<const void*>(entry));
  lib->compiler_ = __VERSION__;
  return lib;
}

Library::~Library() {
  if (file_ < 0) return;
  const std::string name = name_of(file_);
  bool gone = true;
  if (handle_) {
    const LoaderLock unloading;
    dlclose(handle_);
    // glibc keeps a library loaded while a thread has objects of it left to destroy. Its name must not be
    // reused then: the descriptor stays open.
    if (void* still = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) gone = false, dlclose(still);
  }
  if (gone) close(file_);
}

}  // namespace gimbal
