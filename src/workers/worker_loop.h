// The other end of RemoteService: a worker process serves what comes from the socket until it is closed.
#pragma once
#include "scheduler/request.h"
#include "workers/message.h"

namespace gimbal {

struct WorkerLoop {
  int socket;  // which it closes
  GenerationService& service;
  std::function<uint64_t()> steps;     // rises while anything is computed
  std::function<std::string()> facts;  // JSON for metrics; may be empty
};

// Says hello and returns when the front is gone, or said what makes no sense (the error). Requests that still
// run are cancelled. Calls no sink after it returned.
Status serve_front(const WorkerLoop&, const wire::Hello&);

// Before there is a service: tells how far loading is, or why there will be none.
void tell_loading(int socket, uint64_t done, uint64_t total);
void tell_failed(int socket, const Error&);

}  // namespace gimbal
