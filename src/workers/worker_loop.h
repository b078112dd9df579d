// The other end of RemoteService: a worker process serves requests from the socket until it is closed.
#pragma once
#include <memory>
#include <span>

#include "scheduler/request.h"
#include "scheduler/saved_prompts.h"
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
  SavedPrompts* saved = nullptr;  // called from one other thread
};

// A worker's side of the connection, message by message. The service outlives it.
class FrontSession {
 public:
  FrontSession(const WorkerLoop&, const wire::Hello&);  // sends Hello
  ~FrontSession();                                      // requests may still run, without output
  // Reads the messages that arrived and hands them to the service; never blocks. False: the front is gone.
  // Errors: Malformed for an invalid message.
  Result<bool> turn();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
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
void send_loading(int socket, uint64_t done, uint64_t total);
void send_failed(int socket, const Error&);

}  // namespace gimbal
