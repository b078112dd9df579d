// The other end of RemoteService: a worker process serves what comes from the socket until it is closed.
#pragma once
#include <span>

#include "scheduler/request.h"
#include "workers/message.h"

namespace gimbal {

struct WorkerLoop {
  int socket;                                 // which it closes
  GenerationService* service;                 // nullptr: it gives embeddings only
  std::function<SchedulerNumbers()> numbers;  // from the loop's thread; may be empty
  // As ServedModel::embed, from one other thread; may be empty.
  std::function<Status(std::span<const std::vector<Token>>,
                       const std::function<Status(size_t, std::span<const float>)>&)>
      embed;
};

// Says hello and returns when the front is gone, or said what makes no sense (the error). Requests that still
// run are cancelled. Calls no sink after it returned.
Status serve_front(const WorkerLoop&, const wire::Hello&);

// Before there is a service: tells how far loading is, or why there will be none.
// What the process is about to take; returns when the front lets it. Errors: Usage when the front is gone.
Status ask_for_memory(int socket, const wire::Planned&);
void tell_loading(int socket, uint64_t done, uint64_t total);
void tell_failed(int socket, const Error&);

}  // namespace gimbal
