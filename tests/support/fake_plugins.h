// Folders with plugins that work or fail as a test wishes: tests/device/plugins.cmake builds them for
// whoever includes this.
// What a fake can be told: tests/device/plugins/fake.cpp.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

// AddressSanitizer replaces glibc's malloc, which is ready for fork(), by an allocator that is not: libasan
// of GCC 12 neither intercepts fork() nor registers a handler for it, as libtsan does (`nm -D` shows both). A
// child that was forked while another thread was in the allocator may wait for its lock for ever.
#ifdef __SANITIZE_ADDRESS__
#define SKIP_WHERE_MALLOC_DOES_NOT_SURVIVE_FORK()                                                         \
  GTEST_SKIP() << "AddressSanitizer's allocator (GCC 12) takes no lock around fork(), as glibc's malloc " \
                  "does"
#else
#define SKIP_WHERE_MALLOC_DOES_NOT_SURVIVE_FORK()
#endif

// For tests whose threads allocate or load libraries without a pause: under GCC 12's ThreadSanitizer about
// one child in 150 waits for ever inside its runtime.
#ifdef __SANITIZE_THREAD__
#define SKIP_WHERE_BUSY_THREADS_DO_NOT_SURVIVE_FORK() \
  GTEST_SKIP() << "ThreadSanitizer's runtime (GCC 12) may keep a lock of its own over fork()"
#else
#define SKIP_WHERE_BUSY_THREADS_DO_NOT_SURVIVE_FORK() SKIP_WHERE_MALLOC_DOES_NOT_SURVIVE_FORK()
#endif

namespace gimbal::test {

// Beside the executable: so its bytes do not tell in which build folder it was made.
inline std::string test_plugins() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plugins").string();
}

// The real plugin of the toy, which lies beside the program where the toy is one of its backends.
inline std::string toy_plugin() {
  const std::string name = "/libgimbal-backend-toy.so", among_fakes = test_plugins() + "/toy" + name;
  return std::filesystem::exists(among_fakes) ? among_fakes : test_plugins() + "/../.." + name;
}

// An empty folder of its own, removed with its contents. Each backend in it is a fake told so through the
// environment, which is shared by the whole process: one folder with a backend of a name at a time.
class PluginFolder {
 public:
  PluginFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "gimbal-plugins-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  PluginFolder(const PluginFolder&) = delete;
  ~PluginFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string file(const std::string& backend) const {
    return path_ + "/libgimbal-backend-" + backend + ".so";
  }

  // `which`: a folder of test_plugins(). Replaces a file of that name, as package managers do: by a new
  // file.
  std::string put(const std::string& backend, const std::string& told = "",
                  const std::string& which = "v1") const {
    const std::string from = test_plugins() + "/" + which + "/libgimbal-backend-fake.so";
    std::filesystem::copy_file(from, file(backend) + ".new",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(file(backend) + ".new", file(backend));
    tell(backend, told);
    return file(backend);
  }
  static void tell(const std::string& backend, const std::string& told) {
    setenv(("GIMBAL_FAKE_" + backend).c_str(), told.c_str(), 1);
  }

 private:
  std::string path_;
};

}  // namespace gimbal::test
