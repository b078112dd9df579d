// What the models of a server have planned to take of the host's memory and have not touched yet. The system
// calls this memory free: a KV cache is mapped when a model is loaded, and takes memory as texts fill it.
#pragma once
#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "workers/message.h"

namespace gimbal {

// Bytes in memory of a process that are no file's; 0: it is gone.
uint64_t anonymous_bytes(pid_t);

// Of all workers of a server. May be used from any thread.
class PromisedMemory : public std::enable_shared_from_this<PromisedMemory> {
 public:
  // `resident`: anonymous_bytes, but in tests.
  explicit PromisedMemory(std::function<uint64_t(pid_t)> resident = anonymous_bytes)
      : resident_(std::move(resident)) {}

  // One worker, whose process may be replaced by another one. Several workers may share a process. It
  // promises nothing any more when it is destroyed.
  class Worker {
   public:
    ~Worker();
    // What a process that is started now must leave free for the others. Not for those of the same model with
    // `divides`, if it divides, too: each of them takes its part only of what is free.
    uint64_t of_others() const;
    // Another process, in place of the one before if there was one; 0: none for the moment. Until it has
    // planned, all that its predecessor planned is kept for it.
    void is_process(pid_t);
    // Its process has planned this, and has taken nothing of it. Perhaps several times, for several models.
    void plans(const wire::Planned&);
    void gives_up();  // until there is another process

   private:
    friend class PromisedMemory;
    struct Entry {
      std::string model;
      bool divides;
      pid_t pid = 0;
      bool fresh = true;             // this process has planned nothing yet
      uint64_t before = 0;           // in memory before it took anything
      uint64_t own = 0, mapped = 0;  // that it planned: of its own, and of a file
    };
    Worker(std::shared_ptr<PromisedMemory> all, Entry entry);
    const std::shared_ptr<PromisedMemory> all_;
    const std::list<Entry>::iterator entry_;
  };
  // `model`: weights that its workers map from a file are in memory once for all of them. `divides`: it takes
  // a part of what is free, as others of this model do.
  std::unique_ptr<Worker> worker(const std::string& model, bool divides);

  // Held while a model is loaded: one after the other, so that each sees what the others left.
  std::unique_lock<std::mutex> turn_to_load() { return std::unique_lock(loading_); }

 private:
  const std::function<uint64_t(pid_t)> resident_;
  std::mutex loading_;
  std::mutex mutex_;  // of `workers_`
  std::list<Worker::Entry> workers_;
};

}  // namespace gimbal
