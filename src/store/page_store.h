// A folder of pages with a thread that writes them, so that the computing thread only copies bytes. One for
// all models of a process. Pages that cannot be written are counted and noted; no answer fails for them.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "store/page_place.h"

namespace gimbal {

// Thread-safe.
class PageStore {
 public:
  // The writing thread holds at most this many bytes; more pages are dropped.
  static constexpr uint64_t kMostWaiting = uint64_t(128) << 20;

  // `note`: gets sentences for the user, from any thread. `most_waiting`: for tests. Errors: OutOfMemory if
  // the system creates no thread.
  static Result<std::unique_ptr<PageStore>> create(std::unique_ptr<PagePlace> place,
                                                   std::function<void(const std::string&)> note,
                                                   uint64_t most_waiting = kMostWaiting);
  ~PageStore();  // writes the waiting pages

  PagePlace& place() { return *place_; }
  bool has(const PageKey& key) const { return place_->has(key); }
  // As PagePlace::read(). Notes a damaged page.
  Result<uint64_t> read(const PageKey&, std::span<std::byte> content);
  // Takes room for a page of the queue. Empty: there is none, and the page counts as dropped.
  std::vector<std::byte> room_for(uint64_t bytes);
  void give_back(std::vector<std::byte> room);  // of a page that could not be filled
  // Queues a page that was filled in such a room.
  void write(const PageKey&, std::vector<std::byte> content, uint64_t microseconds);
  // Queues PagePlace::used().
  void used(std::vector<PageKey>);
  void wait();  // until the queue is empty

  // A text of at least one page was looked up and read. `tokens`: 0: nothing was found. `seconds`: of
  // reading; `computing`: of computing its pages, once.
  void count_text(int tokens, double seconds, double computing);
  PageStoreNumbers numbers() const;
  void add(const PageStoreNumbers&);  // of another process that shares this place
  void note(const std::string& sentence);

 private:
  // A page to write; or pages that were used, which may be none: the numbers have changed.
  struct Job {
    std::vector<PageKey> keys;
    std::vector<std::byte> content;
    uint64_t microseconds = 0;
  };
  static constexpr int kMostNotes = 20, kPause = 64;

  PageStore(std::unique_ptr<PagePlace> place, std::function<void(const std::string&)> note,
            uint64_t most_waiting);
  void run();
  void work(const Job&);

  const std::unique_ptr<PagePlace> place_;
  const std::function<void(const std::string&)> note_;
  const uint64_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Job> queue_;
  uint64_t waiting_ = 0;  // bytes of rooms that are not written yet
  bool busy_ = false, stopping_ = false;
  int notes_ = 0;
  int paused_ = 0;  // pages to skip after a failure
  PageStoreNumbers numbers_;
  std::thread thread_;
};

}  // namespace gimbal
