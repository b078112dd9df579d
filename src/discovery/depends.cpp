#include "discovery/depends.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/format.h"
#include "base/hash.h"
#include "device/library.h"

namespace gimbal {
namespace {

// The loader's inputs on all systems. The folders of an architecture are those of the C library and of the
// other mapped libraries.
constexpr const char* kLoader[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT",  "/etc/ld.so.cache", "/lib",
                                   "/usr/lib",        "/lib64",     "/usr/lib64"};

std::vector<std::string> parts(std::string_view list, char between) {
  std::vector<std::string> all;
  for (size_t at = 0, end; at <= list.size(); at = end + 1) {
    end = std::min(list.find(between, at), list.size());
    all.emplace_back(list.substr(at, end - at));
  }
  return all;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Reads a file without a size that cannot be mapped (/proc). Takes no lock: see probe.cpp.
std::string read_kernel_file(const char* path) {
  std::string all;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  char piece[1 << 13];
  for (ssize_t n; fd >= 0 && ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR));)
    all.append(piece, size_t(std::max<ssize_t>(n, 0)));
  if (fd >= 0) close(fd);
  return all;
}

void sort_once(std::vector<std::string>& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

class Observer {
 public:
  void look_at(const std::string& line) {
    const bool path = line[0] == '/';
    const bool several = line.find('*', path ? line.rfind('/') : 0) != line.npos;
    add(line);
    if (path) several ? files(line) : file(line);
    else variables(line, several);
  }
  void add(std::string_view text) { hash_.add(text); }
  DependsState state() const { return {format("{:016x}", hash_.value()), last_change_}; }

 private:
  void file(const std::string& path) {
    struct stat s;
    if (stat(path.c_str(), &s) != 0) return add(format("none {}", errno));
    auto time = [](const timespec& t) { return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec; };
    last_change_ = std::max(last_change_, time(s.st_ctim));
    add(format("{} {} {} {:o} {} {} {} {} {}", s.st_dev, s.st_ino, s.st_rdev, s.st_mode, s.st_uid, s.st_gid,
               s.st_size, time(s.st_mtim), time(s.st_ctim)));
  }

  void files(const std::string& pattern) {
    const std::string folder = folder_of(pattern) + "/", name = pattern.substr(folder.size());
    const std::unique_ptr<DIR, int (*)(DIR*)> d(opendir(folder.c_str()), closedir);
    if (!d) return add(format("none {}", errno));
    std::vector<std::string> found;
    while (const dirent* e = readdir(d.get()))
      if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
          fnmatch(name.c_str(), e->d_name, FNM_NOESCAPE) == 0)
        found.push_back(e->d_name);
    std::sort(found.begin(), found.end());  // folder order is arbitrary
    for (const std::string& f : found) add(f), file(folder + f);
  }

  void variables(const std::string& name, bool several) {
    if (!several) {
      const char* value = std::getenv(name.c_str());
      return value ? add(format("={}", value)) : add("none");
    }
    const size_t known = name.find('*');
    std::vector<std::string> found;
    for (char** v = environ; v && *v; v++)
      if (strncmp(*v, name.c_str(), known) == 0) found.push_back(*v);
    std::sort(found.begin(), found.end());
    for (const std::string& f : found) add(f);
  }

  Hash hash_;
  int64_t last_change_ = 0;
};

}  // namespace

std::vector<std::string> mapped_libraries() {
  std::vector<std::string> all;
  for (const std::string& line : parts(read_kernel_file("/proc/self/maps"), '\n')) {
    const size_t at = line.find('/');
    if (at == line.npos) continue;
    std::string path = line.substr(at);
    const bool library = path.find(".so", path.rfind('/')) != path.npos;
    // Memory mappings have no file; device nodes are listed by their users.
    if (library && !path.starts_with("/memfd:") && !path.starts_with("/dev/")) all.push_back(std::move(path));
  }
  sort_once(all);
  return all;
}

std::vector<std::string> all_depends(const char* backend_says, const std::vector<std::string>& before,
                                     std::vector<std::string> loaded) {
  std::vector<std::string> all(std::begin(kLoader), std::end(kLoader));
  for (std::string& line : parts(backend_says, '\n'))
    if (!line.empty()) all.push_back(std::move(line));
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path && *path)
    for (std::string& folder : parts(path, ':')) {
      if (!folder.starts_with('/')) return {};
      all.push_back(std::move(folder));
    }
  for (std::string& library : mapped_libraries()) loaded.push_back(std::move(library));
  sort_once(loaded);
  std::set_difference(loaded.begin(), loaded.end(), before.begin(), before.end(), std::back_inserter(all));
  for (const std::string& library : loaded) all.push_back(folder_of(library));
  sort_once(all);
  return all;
}

DependsState state_of(const std::vector<std::string>& depends) {
  Observer o;
  gid_t groups[256];
  const int n = getgroups(256, groups);
  o.add(format("{} {} {}", geteuid(), getegid(), n));
  for (int i = 0; i < n; i++) o.add(format("{}", groups[i]));
  o.add(build_id_of(reinterpret_cast<const void*>(&state_of)));  // of the code that computes the digest
  for (const std::string& line : depends)
    if (!line.empty()) o.look_at(line);
  return o.state();
}

std::string boot_id() {
  const std::string text = read_kernel_file("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

}  // namespace gimbal
