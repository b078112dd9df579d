#include "files/file_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// A piece per call: large enough for the full speed of a disk, small enough to leave a request soon.
constexpr uint64_t kPiece = 4 << 20;

Error failed(const std::string& path, uint64_t at, uint64_t bytes, const std::string& why) {
  return {Code::Failed,
          format("cannot read {} at offset {} of {}: {}", human_bytes(bytes), at, quoted(path), why),
          "check the file and its disk; then load the model again"};
}

// A description of its own of the same file, for reads past the page cache. The name may belong to another
// file by now, so the descriptor is opened again. -1: the file system cannot do it.
int open_direct([[maybe_unused]] int descriptor) {
#if defined(__linux__) && defined(O_DIRECT)
  return ::open(format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
#else
  return -1;
#endif
}

}  // namespace

uint64_t FilePages::page_bytes() {
  static const uint64_t bytes = std::max<uint64_t>(4096, uint64_t(sysconf(_SC_PAGESIZE)));
  return bytes;
}

uint64_t FilePages::bytes_of(Range r) {
  const uint64_t page = page_bytes();
  return r.begin >= r.end ? 0 : (r.end + page - 1) / page * page - r.begin / page * page;
}

Result<std::unique_ptr<FilePages>> FilePages::open(const InputFile& file, const std::string& path) {
  std::unique_ptr<FilePages> p(new FilePages);
  p->path_ = path, p->size_ = file.size();
  p->fd_ = open_direct(file.descriptor());
  p->direct_ = p->fd_ >= 0;
  if (!p->direct_) p->fd_ = fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (p->fd_ < 0) return Error{Code::Failed, format("cannot open {}: {}", quoted(path), strerror(errno)), ""};
  const uint64_t pages = (p->size_ + page_bytes() - 1) / page_bytes();
  p->reserved_ = std::max<uint64_t>(1, pages) * page_bytes();
  void* data = mmap(nullptr, size_t(p->reserved_), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return Error{Code::OutOfMemory,
                 format("cannot reserve {} of addresses for {}: {}", human_bytes(p->reserved_), quoted(path),
                        strerror(errno)),
                 ""};
  p->data_ = static_cast<std::byte*>(data);
#ifdef MADV_NOHUGEPAGE
  madvise(data, size_t(p->reserved_),
          MADV_NOHUGEPAGE);  // a huge page would take memory for pages without a holder
#endif
  p->holders_.assign(size_t(pages), 0);
  return p;
}

FilePages::~FilePages() {
  if (data_) munmap(data_, size_t(reserved_));
  if (fd_ >= 0) ::close(fd_);
}

Status FilePages::read(Range r) {
  const uint64_t end = std::min(r.end, size_);
  for (uint64_t at = r.begin; at < end;) {
    const uint64_t wanted = std::min(r.end - at, kPiece), expected = std::min(wanted, end - at);
    const ssize_t n = pread(fd_, data_ + at, size_t(direct_ ? wanted : expected), off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_, at, expected, strerror(errno));
    // A direct read continues at a page only. A shorter one means the end of the file.
    const uint64_t got = uint64_t(n) >= expected ? expected
                         : direct_               ? uint64_t(n) / 4096 * 4096
                                                 : uint64_t(n);
    if (got == 0)
      return failed(
          path_, at, expected,
          format("the file ends at {}, and had {} bytes when it was opened", at + uint64_t(n), size_));
    at += got, read_ += got;
  }
#ifdef POSIX_FADV_DONTNEED
  if (!direct_) posix_fadvise(fd_, off_t(r.begin), off_t(r.end - r.begin), POSIX_FADV_DONTNEED);
#endif
  return Done{};
}

void FilePages::release(uint64_t first, uint64_t past) {
  const uint64_t page = page_bytes();
#ifdef __linux__
  madvise(data_ + first * page, size_t((past - first) * page), MADV_DONTNEED);
#else  // elsewhere this is only advice
  mmap(data_ + first * page, size_t((past - first) * page), PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
#endif
  held_ -= (past - first) * page;
}

Status FilePages::hold(std::span<const Range> ranges) {
  const uint64_t page = page_bytes();
  for (size_t i = 0; i < ranges.size(); i++) {
    const Range& r = ranges[i];
    if (r.begin >= r.end) continue;
    const uint64_t past = (r.end + page - 1) / page;
    for (uint64_t at = r.begin / page; at < past;) {
      uint64_t to = at;  // pages [at, to) are alike: all in memory, or all missing
      while (to < past && (holders_[to] == 0) == (holders_[at] == 0)) to++;
      if (holders_[at] == 0) {
        held_ += (to - at) * page, most_ = std::max(most_, held_);
        if (auto ok = read({at * page, to * page}); !ok) {
          release(at, to);
          if (at > r.begin / page) drop(std::array{Range{r.begin, at * page}});
          drop(ranges.first(i));
          return ok;
        }
      }
      for (; at < to; at++) holders_[at]++;
    }
  }
  return Done{};
}

void FilePages::drop(std::span<const Range> ranges) {
  const uint64_t page = page_bytes();
  for (const Range& r : ranges) {
    if (r.begin >= r.end) continue;
    const uint64_t past = (r.end + page - 1) / page;
    for (uint64_t at = r.begin / page; at < past;) {
      if (--holders_[at] > 0) {
        at++;
        continue;
      }
      const uint64_t first = at++;
      while (at < past && holders_[at] == 1) holders_[at++] = 0;
      release(first, at);
    }
  }
}

}  // namespace gimbal
