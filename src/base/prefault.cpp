#include "base/prefault.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {
namespace {

// Of one call: several for each thread, and a whole number of huge pages.
constexpr uint64_t kPiece = 8 << 20;

#ifdef __linux__
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which old headers lack
#endif

// The file lacks the page, its disk cannot read it, or the memory that holds it is broken.
bool is_unreadable(int error) {
#ifdef EHWPOISON
  if (error == EHWPOISON) return true;
#endif
  return error == EFAULT || error == EIO;
}

std::string reason_of(int error) {
  if (is_unreadable(error)) return "the file was truncated, or cannot be read";
  if (error == EINVAL || error == ENOSYS || error == EPERM)
    return format("this system does not do it on request, as Linux does since 5.14 ({})", strerror(error));
  return strerror(error);
}

}  // namespace

int Prefault::populate([[maybe_unused]] Bytes b) {
#ifdef __linux__
  while (madvise(const_cast<std::byte*>(b.data()), b.size(), kPopulateRead) != 0)
    if (errno != EINTR) return errno;
  return 0;
#else
  return ENOSYS;
#endif
}

Prefault::Prefault(std::vector<Bytes> ranges, unsigned threads, Populate populate)
    : populate_(std::move(populate)), begin_(now()) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  for (const Bytes& r : ranges) {
    if (r.empty()) continue;
    const auto begin = reinterpret_cast<uintptr_t>(r.data()) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(r.data()) + r.size() + page - 1) / page * page;
    report_.wanted += end - begin;
    for (uintptr_t at = begin, to; at < end; at = to) {
      to = std::min(end, (at / kPiece + 1) * kPiece);
      pieces_.emplace_back(reinterpret_cast<const std::byte*>(at), size_t(to - at));
    }
  }
  const auto most = unsigned(std::min<size_t>(threads, pieces_.size()));
  const std::lock_guard lock(mutex_);
  try {
    while (report_.threads < most) threads_.emplace_back([this] { run(); }), report_.threads++;
  } catch (const std::system_error&) {
    // The system cannot create more threads: the existing ones do the work.
  }
  if (report_.threads == 0 && !pieces_.empty()) report_.stopped = "there is no thread for it";
}

Prefault::~Prefault() { cancel(); }

void Prefault::run() {
  for (size_t i; !stop_ && (i = next_.fetch_add(1)) < pieces_.size();) {
    if (const int error = populate_(pieces_[i])) {
      stop(error, pieces_[i]);
      break;
    }
    bytes_ += pieces_[i].size();
  }
  const std::lock_guard lock(mutex_);
  report_.seconds = now() - begin_;
}

void Prefault::stop(int error, Bytes piece) {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  if (report_.stopped.empty()) report_.stopped = reason_of(error);
  if (is_unreadable(error) && !report_.unreadable) report_.unreadable = piece.data();
}

const Prefault::Report& Prefault::finish() {
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  report_.bytes = bytes_;
  if (report_.bytes < report_.wanted && report_.stopped.empty()) report_.stopped = "it was cancelled";
  return report_;
}

const Prefault::Report& Prefault::cancel() {
  stop_ = true;
  return finish();
}

std::string Prefault::Report::text() const {
  const std::string done = format("{} in {:.0f} ms by {} thread{}", human_bytes(bytes), seconds * 1e3,
                                  threads, threads == 1 ? "" : "s");
  return stopped.empty() ? done : format("{}, of {}: {}", done, human_bytes(wanted), stopped);
}

}  // namespace gimbal
