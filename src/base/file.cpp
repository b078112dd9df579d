#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/format.h"

namespace gimbal {
namespace {

Error system_error(const char* doing, const std::string& path) {
  int e = errno;
  return {e == ENOENT ? Code::NotFound : Code::Failed, format("cannot {} '{}': {}", doing, path, strerror(e)),
          ""};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (d.fd < 0) return system_error("open", path);
  struct stat st;
  if (fstat(d.fd, &st) != 0) return system_error("look at", path);
  if (!S_ISREG(st.st_mode))
    return Error{Code::Failed,
                 format("'{}' is {}, not a file", path, S_ISDIR(st.st_mode) ? "a folder" : "special"), ""};
  MappedFile file;
  if (st.st_size == 0) return file;
  void* p = mmap(nullptr, size_t(st.st_size), PROT_READ, MAP_PRIVATE, d.fd, 0);
  if (p == MAP_FAILED) return system_error("map", path);
  file.data_ = static_cast<const std::byte*>(p);
  file.size_ = size_t(st.st_size);
  return file;
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::fetch(Bytes range) const {
#ifdef MADV_POPULATE_READ  // Linux 5.14; where it fails, pages come with the first touch as ever
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = uintptr_t(range.data()) / page * page, end = uintptr_t(range.data()) + range.size();
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
#endif
}

void MappedFile::release(Bytes range) const {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = align_up(uintptr_t(range.data()), page),
            end = (uintptr_t(range.data()) + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Result<std::string> read_file(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  Bytes b = file->bytes();
  return std::string(reinterpret_cast<const char*>(b.data()), b.size());
}

Status write_file(const std::string& path, std::string_view contents) {
  Descriptor d{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (d.fd < 0) return system_error("write", path);
  while (!contents.empty()) {
    ssize_t n = ::write(d.fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", path);
    contents.remove_prefix(size_t(n));
  }
  return Done{};
}

Status replace_file(const std::string& path, std::string_view contents) {
  std::error_code e;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), e);  // else the write fails
  const std::string draft = format("{}.{}", path, getpid());
  Status done = write_file(draft, contents);
  if (done && std::rename(draft.c_str(), path.c_str()) != 0) done = system_error("replace", path);
  if (!done) std::remove(draft.c_str());
  return done;
}

}  // namespace gimbal
