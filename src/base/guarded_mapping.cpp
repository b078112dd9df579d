#include "base/guarded_mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/format.h"

namespace gimbal {
namespace {

// Read by the signal handler without locks or allocation. A slot is free while its end is 0.
struct Watch {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
};
Watch watches[GuardedMapping::kMost];
struct sigaction before;  // previous handler
uintptr_t page_size;

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Watch& w : watches) {
    const uintptr_t end = w.end.load(), page = at / page_size * page_size;
    if (info->si_code <= 0 || at < w.begin.load() || at >= end) continue;  // <= 0: sent by a process
    // Replace everything up to the end at once: a truncated file lacks its end.
    if (mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      break;
    w.lost.store(true);
    errno = kept;
    return;
  }
  errno = kept;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  sigaction(number, &before, nullptr);
  raise(number);
}

void handle_bus_errors() {
  page_size = uintptr_t(sysconf(_SC_PAGESIZE));
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, &before);
}

std::mutex taking;  // guards allocation of slots

}  // namespace

Result<GuardedMapping> GuardedMapping::map(const InputFile& file) {
  auto state = file.state();
  if (!state) return state.error();
  GuardedMapping m;
  if (state->size == 0) return m;
  static std::once_flag once;
  std::call_once(once, handle_bus_errors);
  const std::lock_guard lock(taking);
  for (m.watch_ = 0; m.watch_ < kMost && watches[m.watch_].end.load(); m.watch_++) {}
  if (m.watch_ == kMost) {
    m.watch_ = -1;
    return Error{Code::Failed, format("{} files are mapped already", kMost), ""};
  }
  void* p = mmap(nullptr, state->size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (p == MAP_FAILED) {
    m.watch_ = -1;
    return Error{errno == ENOMEM ? Code::OutOfMemory : Code::Failed,
                 format("cannot map {}: {}", human_bytes(state->size), strerror(errno)), ""};
  }
  // With small pages, TLB misses slow down products of few rows. Only a hint: not every file system supports
  // it, and pages already in memory stay small.
  madvise(p, state->size, MADV_HUGEPAGE);
  m.bytes_ = {static_cast<const std::byte*>(p), size_t(state->size)};
  Watch& w = watches[m.watch_];
  w.lost.store(false);
  w.begin.store(reinterpret_cast<uintptr_t>(p));
  w.end.store(reinterpret_cast<uintptr_t>(p) + state->size);
  return m;
}

GuardedMapping::GuardedMapping(GuardedMapping&& o) noexcept
    : bytes_(std::exchange(o.bytes_, {})), watch_(std::exchange(o.watch_, -1)) {}

GuardedMapping& GuardedMapping::operator=(GuardedMapping&& o) noexcept {
  std::swap(bytes_, o.bytes_), std::swap(watch_, o.watch_);
  return *this;
}

GuardedMapping::~GuardedMapping() {
  if (watch_ < 0) return;
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  watches[watch_].end.store(0);
}

bool GuardedMapping::lost() const { return watch_ >= 0 && watches[watch_].lost.load(); }

}  // namespace gimbal
