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

// Says hello and returns when the front is gone, or said what makes no sense (the error). Requests may still
// run then, and tell nothing: the service's end ends them.
Status serve_front(const WorkerLoop&, const wire::Hello&);

// ---- before there is a service

// The first message: the model, and how it is loaded. Errors: Malformed; Usage when the front is gone.
Result<wire::Load> wait_for_load(int socket);
// What the process is about to take; returns when the front lets it. Errors: Usage when the front is gone.
Status ask_for_memory(int socket, const wire::Planned&);
// How far loading is, or why there will be no service.
void tell_loading(int socket, uint64_t done, uint64_t total);
void tell_failed(int socket, const Error&);

}  // namespace gimbal
