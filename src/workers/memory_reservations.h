// Host memory that the models of a server have planned to take and have not touched yet. The system reports
// this memory as free: a KV cache is mapped at load time and takes memory only as texts fill it.
#pragma once
#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "runtime/model_plan.h"
#include "workers/message.h"

namespace gimbal {

// Resident bytes of a process that belong to no file; 0: the process is gone.
uint64_t anonymous_bytes(pid_t);

// For all workers of a server. Thread-safe.
class MemoryReservations : public std::enable_shared_from_this<MemoryReservations> {
 public:
  // `resident`: replaced in tests only.
  explicit MemoryReservations(std::function<uint64_t(pid_t)> resident = anonymous_bytes)
      : resident_(std::move(resident)) {}

  // One worker; its process may be replaced. Several workers may share a process. The destructor withdraws
  // its promise.
  class Worker {
   public:
    ~Worker();
    // Bytes that a process starting now must leave free for other workers. Without workers of the same
    // model if both have `divides`: each of those takes only its part of the free memory.
    uint64_t of_others() const;
    // Sets its process, in place of the previous one; 0: none for the moment. Until the new process has
    // planned, it keeps the reservation of its predecessor.
    void is_process(pid_t);
    // Its process has planned this and taken none of it yet. Call it once for each model of the process.
    void plans(const wire::Planned&);
    void gives_up();  // promises nothing until the next process

   private:
    friend class MemoryReservations;
    struct Entry {
      std::string model;
      bool divides;
      pid_t pid = 0;
      bool fresh = true;             // this process has not planned yet
      uint64_t before = 0;           // resident before it took anything
      uint64_t own = 0, mapped = 0;  // planned bytes: private, and of a file
    };
    Worker(std::shared_ptr<MemoryReservations> all, Entry entry);
    const std::shared_ptr<MemoryReservations> all_;
    const std::list<Entry>::iterator entry_;
  };
  // `model`: its workers share one copy of the weights that they map from a file. `divides`: it takes a
  // part of the free memory, as other workers of this model do.
  std::unique_ptr<Worker> worker(const std::string& model, bool divides);

  // Hold it while a model is loaded: one load at a time, so that each sees the memory that the others left.
  std::unique_lock<std::mutex> turn_to_load() { return std::unique_lock(loading_); }

 private:
  const std::function<uint64_t(pid_t)> resident_;
  std::mutex loading_;
  std::mutex mutex_;  // guards `workers_`
  std::list<Worker::Entry> workers_;
};

// Checks that processes that allocate at the same time fit into memory together: each of them sees the same
// memory as free.

// The memory that a process will take. Packed weights of the plan count as shared.
wire::Planned planned_needs(const ModelPlan&);

// All processes load the same file, so their shared bytes are the same. Errors: OutOfMemory, with numbers
// and remedy, if they need more of a memory than the least free amount that any of them reported.
Status fit_together(std::span<const wire::Planned>);

}  // namespace gimbal
