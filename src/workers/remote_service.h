// A GenerationService whose engine is another process. When that process crashes, hangs, loses its device or
// breaks the protocol it is replaced, and every request goes on from what was told: no token is lost or told
// twice, because an answer depends on its request alone. One that ends every worker is found and given up.
#pragma once
#include <chrono>
#include <memory>
#include <span>

#include "scheduler/request.h"
#include "workers/message.h"
#include "workers/promised_memory.h"

namespace gimbal {

struct WorkerSettings {
  std::vector<std::string> command;  // of the process; its first word: the program's path
  wire::Load load;                   // what it loads; `promised` is set for each process, from `memory`
  // The first process says what memory it is about to take and waits (wait_planned, admit). Those that
  // replace it do not: what their predecessors took may not be free yet.
  bool asks_for_memory = false;
  // Its part of what this server's workers will take; none: they are not asked. Each process is told what it
  // must leave to the others.
  std::shared_ptr<PromisedMemory::Worker> memory = {};
  int vocabulary = 0;                               // tokens from 0 on; others are not believed
  std::chrono::milliseconds ping_every{2'000};      // and where ask_numbers() was called
  std::chrono::milliseconds silence{30'000};        // without an answer to a ping: it hangs
  std::chrono::milliseconds standstill{120'000};    // without a step though requests run: it hangs
  std::chrono::milliseconds longest_load{600'000};  // without progress of loading
  // Workers lost in a row with one request alone and no new token, before it is given up (workers/blame.h);
  // or that broke as soon as they were started, before the service is.
  int attempts = 3;
  // What a user must or may know, from a thread of its own; must not block.
  std::function<void(uint64_t done, uint64_t total)> loading;
  std::function<void(const wire::Hello&)> ready;         // again after each replacement
  std::function<void(const std::string& why)> replaced;  // "worker 4711 ended by signal 9; ..."
};

struct WorkerFacts {
  bool ready = false;
  int pid = 0;  // 0: between two
  int restarts = 0;
  // Of the worker that is there, or was last; not null.
  std::shared_ptr<const wire::Hello> hello = std::make_shared<wire::Hello>();
  SchedulerNumbers numbers;  // its last answer
};

class RemoteService : public GenerationService {
 public:
  // Starts the process; it need not be ready. Errors: Failed, where it cannot be started.
  static Result<std::unique_ptr<RemoteService>> start(WorkerSettings settings);
  ~RemoteService() override;  // requests that run fail

  // Waits until it is ready. Errors: the worker's own (a model that does not fit); Failed when no worker
  // becomes ready.
  Status wait_ready();
  // Waits until it asks for memory. Nothing: it does not, or no more. Errors: as wait_ready().
  Result<std::optional<wire::Planned>> wait_planned();
  void admit();  // it takes what it asked for
  // Another process takes the place of this one, and its requests, of which none is blamed. A service that
  // had ended goes on. wait_ready() then waits for the new one.
  void replace();
  WorkerFacts facts() const;  // its numbers are those of its last ping's answer
  // The worker is asked for its numbers now; facts() has them when they are here. Whoever calls this each
  // time he looks has those of the look before, and so what went on between two looks.
  void ask_numbers();

  // Errors: only when the service has ended; all others come to the sink.
  Status submit(uint64_t id, GenerationRequest, GenerationSink) override;
  void cancel(uint64_t id) override;

  // For each text, in order; `sink` is called from this thread, and its error ends the call. Goes on where a
  // lost worker stopped. Errors: the worker's.
  using EmbeddingSink = std::function<Status(size_t text, std::span<const float>)>;
  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink);

 private:
  struct Impl;
  explicit RemoteService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
