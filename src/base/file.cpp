#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

Error system_error(const char* doing, const std::string& path) {
  const int e = errno;
  return {e == ENOENT   ? Code::NotFound
          : e == ENOMEM ? Code::OutOfMemory
                        : Code::Failed,
          format("cannot {} '{}': {}", doing, escaped(path), strerror(e)), ""};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

InputFile::State state_of(const struct stat& st) {
#ifdef __APPLE__
  const timespec &modified = st.st_mtimespec, &changed = st.st_ctimespec;
#else
  const timespec &modified = st.st_mtim, &changed = st.st_ctim;
#endif
  auto nanoseconds = [](const timespec& t) { return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec; };
  return {uint64_t(st.st_dev),  uint64_t(st.st_ino), uint64_t(st.st_size), nanoseconds(modified),
          nanoseconds(changed), uint32_t(st.st_uid), uint32_t(st.st_mode)};
}

// Opens a regular file and gets its status. O_NONBLOCK: opening a FIFO must not wait for a writer.
Result<int> open_regular(const std::string& path, struct stat& st) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("open", path);
  Descriptor d{fd};
  if (fstat(fd, &st) != 0) return system_error("look at", path);
  if (S_ISDIR(st.st_mode))
    return Error{Code::Failed, format("'{}' is a folder, not a file", escaped(path)), ""};
  if (!S_ISREG(st.st_mode))
    return Error{Code::Failed, format("'{}' is a pipe or device; a regular file is needed", escaped(path)),
                 ""};
  d.fd = -1;
  return fd;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  struct stat st;
  auto fd = open_regular(path, st);
  if (!fd) return fd.error();
  const Descriptor d{*fd};
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

InputFile::InputFile(InputFile&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), size_(o.size_), modified_(o.modified_) {}

InputFile& InputFile::operator=(InputFile&& o) noexcept {
  std::swap(fd_, o.fd_), std::swap(path_, o.path_), std::swap(size_, o.size_);
  std::swap(modified_, o.modified_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InputFile> InputFile::open(const std::string& path) {
  struct stat st;
  auto fd = open_regular(path, st);
  if (!fd) return fd.error();
  InputFile file;
  file.fd_ = *fd;
  file.path_ = path;
  file.size_ = uint64_t(st.st_size);
  file.modified_ = state_of(st).modified;
  return file;
}

// The GNU C library's fstat() passes an (empty) path to the kernel, and the sandbox of a worker
// (workers/sandbox.h) forbids system calls with paths.
int state_of_open(int fd, struct stat& st) {
#if defined(__linux__) && defined(__LP64__) && defined(SYS_fstat)
  return int(syscall(SYS_fstat, fd, &st));
#else
  return fstat(fd, &st);
#endif
}

Result<InputFile> InputFile::adopt(int descriptor, const std::string& name) {
  InputFile file;
  file.fd_ = descriptor, file.path_ = name;
  struct stat st;
  if (state_of_open(descriptor, st) != 0) return system_error("look at", name);
  if ((st.st_mode & S_IFMT) != S_IFREG)
    return Error{Code::Failed, format("'{}' is no regular file", escaped(name)), ""};
  file.size_ = uint64_t(st.st_size), file.modified_ = state_of(st).modified;
  return file;
}

Result<InputFile::State> InputFile::state() const {
  struct stat st;
  if (state_of_open(fd_, st) != 0) return system_error("look at", path_);
  return state_of(st);
}

Result<InputFile::State> InputFile::state_of_name(const std::string& path) {
  struct stat st;
  if (lstat(path.c_str(), &st) != 0) return system_error("look at", path);
  return state_of(st);
}

Status InputFile::read(uint64_t offset, void* to, size_t bytes) const {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_, static_cast<char*>(to) + done, bytes - done, off_t(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path_);
    if (n == 0)
      return Error{Code::Malformed,
                   format("'{}' became shorter while it was read: expected {} bytes, found {}",
                          escaped(path_), size_, offset + done),
                   "wait until the program that writes the file has finished"};
    done += size_t(n);
  }
  return Done{};
}

bool InputFile::is(const std::string& path) const {
  struct stat mine, other;
  return fstat(fd_, &mine) == 0 && stat(path.c_str(), &other) == 0 && mine.st_dev == other.st_dev &&
         mine.st_ino == other.st_ino;
}

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  struct stat st;
  auto fd = open_regular(path, st);
  if (!fd) return fd.error();
  const Descriptor d{*fd};
  std::string text;
  for (;;) {
    // One byte more than reported finds the end of the file without growing the buffer.
    const uint64_t said = uint64_t(st.st_size) + 1;
    const size_t begin = text.size(),
                 more = size_t(begin < said ? said - begin : std::max<size_t>(begin, 4096));
    text.resize(size_t(std::min<uint64_t>(begin + more, max_bytes + 1)));
    const ssize_t n = ::read(d.fd, text.data() + begin, text.size() - begin);
    text.resize(begin + size_t(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path);
    if (n == 0) return text;
    if (text.size() > max_bytes)
      return Error{Code::Usage, format("'{}' has more than {} bytes", escaped(path), max_bytes), ""};
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  const auto text = read_file(path);
  std::vector<std::string> lines;
  for (size_t begin = 0, end; text && begin < text->size(); begin = end + 1) {
    end = std::min(text->find('\n', begin), text->size());
    lines.push_back(text->substr(begin, end - begin));
  }
  return lines;
}

std::string first_line(const std::string& path) {
  const auto lines = lines_of(path);
  return lines.empty() ? "" : lines[0];
}

namespace {

Status write_all(int fd, const std::string& path, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", path);
    contents.remove_prefix(size_t(n));
  }
  return Done{};
}

}  // namespace

// Of this process alone; several threads may write the same file.
static std::string draft_name(const std::string& target) {
  static std::atomic<unsigned> count{0};
  return format("{}.{}-{}", target, getpid(), count++);
}

Status write_file(const std::string& path, std::string_view contents) {
  const Descriptor d{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (d.fd < 0) return system_error("write", path);
  return write_all(d.fd, path, contents);
}

Result<DraftFile> DraftFile::create(const std::string& path, uint32_t wanted_mode) {
  namespace fs = std::filesystem;
  DraftFile d;
  std::error_code e;
  d.target_ = fs::is_symlink(path, e) ? fs::weakly_canonical(path, e).string() : path;
  if (d.target_.empty()) d.target_ = path;
  const std::string folder = fs::path(d.target_).parent_path().string();
  struct stat old;
  const bool there = stat(d.target_.c_str(), &old) == 0;
  if (there && S_ISDIR(old.st_mode)) return errno = EISDIR, system_error("write", path);
  if (there && access(d.target_.c_str(), W_OK) != 0) return system_error("write", path);
  const mode_t mode = wanted_mode ? mode_t(wanted_mode) : there ? old.st_mode & 0777 : 0644;
#ifdef O_TMPFILE
  if (access("/proc/self/fd", X_OK) == 0)
    d.fd_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
#endif
  if (d.fd_ < 0) {
    d.name_ = draft_name(d.target_);
    d.fd_ = ::open(d.name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  }
  if (d.fd_ < 0) {
    d.name_.clear();
    return system_error("write", path);
  }
  if (there || wanted_mode) (void)!fchmod(d.fd_, mode);  // regardless of the umask
  return d;
}

DraftFile DraftFile::adopt(int descriptor) {
  DraftFile d;
  d.fd_ = descriptor, d.target_ = "the draft of another process";
  return d;
}

DraftFile::DraftFile(DraftFile&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)),
      held_(std::move(o.held_)),
      target_(std::move(o.target_)),
      name_(std::exchange(o.name_, {})) {}

DraftFile::~DraftFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!name_.empty()) ::unlink(name_.c_str());
}

Status DraftFile::write(const void* data, size_t bytes) {
  constexpr size_t kPiece = size_t(8) << 20;
  std::string_view rest(static_cast<const char*>(data), bytes);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, kPiece - held_.size());
    held_ += part, rest.remove_prefix(part.size());
    if (held_.size() < kPiece) break;
    if (auto ok = flush(); !ok) return ok;
  }
  return Done{};
}

Status DraftFile::flush() {
  auto ok = write_all(fd_, target_, held_);
  held_.clear();
  return ok;
}

Status DraftFile::rewrite(uint64_t offset, const void* data, size_t bytes) {
  if (auto ok = flush(); !ok) return ok;
  const auto* from = static_cast<const char*>(data);
  while (bytes) {
    const ssize_t n = ::pwrite(fd_, from, bytes, off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_error("write", target_);
    from += n, offset += uint64_t(n), bytes -= size_t(n);
  }
  return Done{};
}

Status DraftFile::sync() {
  if (auto ok = flush(); !ok) return ok;
  if (::fsync(fd_) != 0) return system_error("write", target_);
  return Done{};
}

Status DraftFile::commit() {
  if (auto ok = flush(); !ok) return ok;
  if (name_.empty()) {
    const std::string name = draft_name(target_);
    ::unlink(name.c_str());  // left by a killed process with the same number
    if (::linkat(AT_FDCWD, format("/proc/self/fd/{}", fd_).c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) != 0)
      return system_error("write", target_);
    name_ = name;
  }
  if (::close(std::exchange(fd_, -1)) != 0) return system_error("write", target_);
  if (std::rename(name_.c_str(), target_.c_str()) != 0) return system_error("replace", target_);
  name_.clear();
  return Done{};
}

Status replace_file(const std::string& path, std::string_view contents) {
  namespace fs = std::filesystem;
  std::error_code e;
  const fs::path folder = fs::path(path).parent_path();  // empty: the present one
  if (!folder.empty()) fs::create_directories(folder, e);
  std::error_code unknown;
  if (e && !fs::is_directory(folder, unknown))
    return Error{Code::Failed, format("cannot create '{}': {}", folder.string(), e.message()), ""};
  auto draft = DraftFile::create(path);
  if (!draft) return draft.error();
  if (auto ok = draft->write(contents.data(), contents.size()); !ok) return ok;
  return draft->commit();
}

}  // namespace gimbal
