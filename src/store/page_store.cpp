#include "store/page_store.h"

#if defined(__linux__)
#include <sys/resource.h>
#endif

#include <algorithm>
#include <csignal>
#include <optional>
#include <system_error>

#include "base/format.h"

namespace gimbal {

Result<std::unique_ptr<PageStore>> PageStore::create(std::unique_ptr<PagePlace> place,
                                                     std::function<void(const std::string&)> note,
                                                     uint64_t most_waiting) {
  std::unique_ptr<PageStore> made(new PageStore(std::move(place), std::move(note), most_waiting));
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::optional<Error> failed;
  try {
    made->thread_ = std::thread([store = made.get()] { store->run(); });
  } catch (const std::system_error& e) {
    failed = Error{Code::OutOfMemory, format("the prefix store has no thread: {}", e.what()), ""};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed) return *failed;
  return made;
}

PageStore::PageStore(std::unique_ptr<PagePlace> place, std::function<void(const std::string&)> note,
                     uint64_t most_waiting)
    : place_(std::move(place)), note_(std::move(note)), most_waiting_(most_waiting) {}

PageStore::~PageStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<uint64_t> PageStore::read(const PageKey& key, std::span<std::byte> content) {
  auto found = place_->read(key, content);
  {
    const std::lock_guard lock(mutex_);
    if (found) numbers_.pages_read++, numbers_.bytes_read += content.size();
    else if (found.error().code == Code::Malformed) numbers_.pages_damaged++;
  }
  if (!found && found.error().code == Code::Malformed)
    note(format("the prefix store deleted a damaged page and computes it again: {}", found.error().message));
  else if (!found && found.error().code != Code::NotFound)
    note(format("the prefix store is not read: {}", found.error().message));
  return found;
}

std::vector<std::byte> PageStore::room_for(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (paused_ > 0 || waiting_ + bytes > most_waiting_) {
      if (paused_ > 0) paused_--;
      numbers_.pages_dropped++;
      return {};
    }
    waiting_ += bytes;
  }
  return std::vector<std::byte>(bytes);
}

void PageStore::give_back(std::vector<std::byte> room) {
  const std::lock_guard lock(mutex_);
  waiting_ -= room.size(), numbers_.pages_dropped++;
}

void PageStore::write(const PageKey& key, std::vector<std::byte> content, uint64_t microseconds) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({{key}, std::move(content), microseconds});
  }
  wake_.notify_one();
}

void PageStore::used(std::vector<PageKey> keys) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(keys), {}, 0});
  }
  wake_.notify_one();
}

void PageStore::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void PageStore::count_text(int tokens, double seconds, double computing) {
  {
    const std::lock_guard lock(mutex_);
    (tokens ? numbers_.hits : numbers_.misses)++;
    numbers_.tokens += uint64_t(tokens);
    numbers_.read_seconds += seconds, numbers_.saved_seconds += std::max(0.0, computing - seconds);
  }
  used({});
}

void PageStore::add(const PageStoreNumbers& more) {
  const std::lock_guard lock(mutex_);
  numbers_ += more;
}

PageStoreNumbers& PageStoreNumbers::operator+=(const PageStoreNumbers& o) {
  hits += o.hits, misses += o.misses, tokens += o.tokens;
  pages_read += o.pages_read, bytes_read += o.bytes_read;
  pages_written += o.pages_written, bytes_written += o.bytes_written;
  pages_damaged += o.pages_damaged, pages_dropped += o.pages_dropped;
  read_seconds += o.read_seconds, saved_seconds += o.saved_seconds;
  return *this;
}

PageStoreNumbers PageStore::numbers() const {
  const uint64_t bytes = place_->bytes(), evicted = place_->evicted();
  const std::lock_guard lock(mutex_);
  PageStoreNumbers n = numbers_;
  n.bytes = bytes, n.pages_evicted = evicted;
  return n;
}

void PageStore::note(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (++notes_ > kMostNotes) return;
  }
  if (note_) note_(sentence);
}

void PageStore::run() {
#if defined(__linux__)
  setpriority(PRIO_PROCESS, 0, 19);  // of this thread: it takes the time that computing leaves
#endif
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    work(job);
    lock.lock();
    waiting_ -= job.content.size();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

// After a failure the next pages are dropped: a full disk would refuse them, too.
void PageStore::work(const Job& job) {
  Status ok = Done{};
  if (job.content.empty()) place_->used(job.keys);
  else ok = place_->write(job.keys[0], job.content, job.microseconds);
  PageStoreNumbers so_far;
  {
    const std::lock_guard lock(mutex_);
    if (!ok) numbers_.pages_dropped++, paused_ = kPause;
    else if (!job.content.empty()) numbers_.pages_written++, numbers_.bytes_written += job.content.size();
    so_far = numbers_;
  }
  place_->count(so_far);
  if (!ok) note(format("a page of the prefix store is not written: {}", ok.error().message));
}

}  // namespace gimbal
