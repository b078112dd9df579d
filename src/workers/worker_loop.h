// The other end of RemoteService: a worker process serves requests from the socket until it is closed.
#pragma once
#include <span>

#include "scheduler/request.h"
#include "workers/message.h"

namespace gimbal {

struct WorkerLoop {
  int socket;                                 // closed by serve_front
  GenerationService* service;                 // nullptr: embeddings only
  std::function<SchedulerNumbers()> numbers;  // from the loop's thread; may be empty
  // As ServedModel::embed, from one other thread; may be empty.
  std::function<Status(std::span<const std::vector<Token>>,
                       const std::function<Status(size_t, std::span<const float>)>&)>
      embed;
};

// Sends Hello, then serves until the front is gone or sends an invalid message (the error). Requests may
// still run then, without output; the end of the service ends them.
Status serve_front(const WorkerLoop&, const wire::Hello&);

// ---- before the service exists

// Reads the first message: model and load settings. Errors: Malformed; Usage if the front is gone.
Result<wire::Load> wait_for_load(int socket);
// Reports the memory that the process will take; waits for Go. Errors: Usage if the front is gone.
Status ask_for_memory(int socket, const wire::Planned&);
// Report the progress of loading, or why no service will start.
void tell_loading(int socket, uint64_t done, uint64_t total);
void tell_failed(int socket, const Error&);

}  // namespace gimbal
