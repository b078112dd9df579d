#include "files/file_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace gimbal {
namespace {

Error no_memory(uint64_t bytes) {
  return {Code::OutOfMemory,
          format("no memory for the header of a model file ({}): {}", human_bytes(bytes), strerror(errno)),
          "close other programs, or raise the limit of this process (ulimit -v)"};
}

}  // namespace

Result<FileBytes> FileBytes::open(const std::string& path, const RemoteFolder* from) {
  FileBytes b;
  if (from) {
    auto file = from->open(path);
    if (!file) return file.error();
    b.remote_ = std::move(*file);
    b.size_ = b.remote_->size();
  } else {
    auto file = InputFile::open(path);
    if (!file) return file.error();
    b.file_ = std::move(*file);
    b.size_ = b.file_.size();
  }
  if (b.size_ == 0) return b;
  // Addresses alone: memory is taken by head(), as much as there is header.
  const uint64_t reserved = reserved_for_header(b.size_);
  void* p = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return no_memory(reserved);
  b.head_ = static_cast<const std::byte*>(p);
  b.reserved_ = reserved;
  return b;
}

FileBytes::FileBytes(FileBytes&& o) noexcept
    : file_(std::move(o.file_)),
      remote_(std::move(o.remote_)),
      head_(o.head_),
      loaded_(o.loaded_),
      reserved_(std::exchange(o.reserved_, 0)),
      size_(o.size_) {}

FileBytes::~FileBytes() {
  if (reserved_) munmap(const_cast<std::byte*>(head_), reserved_);
}

Result<Bytes> FileBytes::head(uint64_t end) {
  if (end > loaded_) {
    if (end > kMaxHeader)
      return Error{Code::Unsupported,
                   format("the header has more than {}, which no known model needs", human_bytes(kMaxHeader)),
                   "The file is probably damaged: download it again."};
    const HeaderGrowth grown = header_growth(loaded_, end, size_);
    auto* to = const_cast<std::byte*>(head_) + loaded_;  // loaded_ is whole pieces until the file ends
    if (mprotect(to, grown.accessible - loaded_, PROT_READ | PROT_WRITE) != 0)
      return no_memory(grown.accessible);
    if (auto ok = fill(loaded_, to, grown.loaded - loaded_); !ok) return ok.error();
    loaded_ = grown.loaded;
  }
  return Bytes(head_, end);
}

Status FileBytes::fill(uint64_t offset, void* to, size_t bytes) const {
  return remote_ ? remote_->read(offset, to, bytes) : file_.read(offset, to, bytes);
}

Status FileBytes::read(uint64_t offset, void* to, size_t bytes) const {
  if (reserved_) return fill(offset, to, bytes);
  if (bytes) std::memcpy(to, head_ + offset, bytes);  // no bytes have no address
  return Done{};
}

Result<GuardedMapping> FileBytes::map() const {
  if (remote_ || !reserved_) return Error{Code::Unsupported, "only a file on this machine can be mapped", ""};
  return GuardedMapping::map(file_);
}

}  // namespace gimbal
