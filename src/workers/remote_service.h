// A GenerationService whose engine is another process. If that process crashes, hangs, loses its device or
// breaks the protocol, it is replaced, and every request continues after its last token. No token is lost
// or sent twice, because an answer depends on its request alone. A request that ends every worker fails.
#pragma once
#include <chrono>
#include <memory>
#include <span>

#include "scheduler/request.h"
#include "scheduler/saved_prompts.h"
#include "store/page_store.h"
#include "workers/memory_reservations.h"
#include "workers/message.h"
#include "workers/worker_process.h"

namespace gimbal {

struct WorkerSettings {
  std::vector<std::string> command;  // of the process; first the program's path
  wire::Load load;                   // the model to load; `promised` is set for each process, from `memory`
  // The first process reports the memory that it will take, and waits (wait_planned, admit). Its successors
  // do not wait: the memory of their predecessors may not be free yet.
  bool asks_for_memory = false;
  // This worker's entry in the memory of all workers; null: not counted. It gives each process the number
  // of bytes to leave for the others.
  std::shared_ptr<MemoryReservations::Worker> memory = {};
  // The prefix store of this process, for the worker's pages; `load` says so, too. nullptr: none.
  std::shared_ptr<PageStore> pages = {};
  int vocabulary = 0;                               // valid tokens: 0 to vocabulary - 1
  std::chrono::milliseconds ping_every{2'000};      // and after ask_numbers()
  std::chrono::milliseconds silence{30'000};        // without an answer to a ping: hung
  std::chrono::milliseconds standstill{120'000};    // without a step though requests run: hung
  std::chrono::milliseconds longest_load{600'000};  // without progress of loading
  // The service gives a request up after this many consecutive workers lost with it alone and no new token
  // (workers/blame.h). It ends itself after this many consecutive failed starts: workers that were lost
  // before they had a request, and before they sent a message after their hello.
  int attempts = 3;
  // Events for the user, called from the service's thread; must not block.
  std::function<void(uint64_t done, uint64_t total)> loading;
  std::function<void(const wire::Hello&)> ready;         // again after each replacement
  std::function<void(const std::string& why)> replaced;  // "worker 4711 ended by signal 9; ..."
};

// The clock and the processes of the system; a simulator has its own.
struct WorkerHost {
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::function<Result<WorkerProcess>(const std::vector<std::string>& command, std::span<const int> files)>
      start = WorkerProcess::start;
};

struct WorkerFacts {
  bool ready = false;
  int pid = 0;  // 0: between two processes
  int restarts = 0;
  // Of the current or last worker; not null.
  std::shared_ptr<const wire::Hello> hello = std::make_shared<wire::Hello>();
  SchedulerNumbers numbers;  // from its last answer
};

class RemoteService : public GenerationService {
 public:
  // Starts the process; does not wait until it is ready. Errors: Failed if it cannot be started.
  static Result<std::unique_ptr<RemoteService>> start(WorkerSettings settings);
  // The same without a thread: turn() does the work.
  static Result<std::unique_ptr<RemoteService>> start_stepped(WorkerSettings settings, WorkerHost host);
  ~RemoteService() override;  // running requests fail

  // Without a thread: takes new requests, the worker's messages and the clock into account once. Never
  // blocks.
  void turn();

  // Waits until a worker is ready. Errors: the worker's own (a model that does not fit); Failed when no
  // worker becomes ready.
  Status wait_ready();
  // Waits until the worker requests memory. nullopt: it makes no request. Errors: as wait_ready().
  Result<std::optional<wire::Planned>> wait_planned();
  void admit();  // grants the requested memory
  // Replaces the process. The new one takes over the requests, and none is blamed. An ended service starts
  // again. wait_ready() then waits for the new process.
  void replace();
  WorkerFacts facts() const;  // its numbers are from the last answer to a ping
  // Requests the worker's numbers; facts() has them once the answer arrives. Asynchronous: the numbers
  // arrive before the next call, so a poller is one interval behind.
  void ask_numbers();

  // Errors: the service has ended. The sink gets all others.
  Status submit(uint64_t id, GenerationRequest, GenerationSink) override;
  void cancel(uint64_t id) override;

  // Calls `sink` for each text, in order, from this thread; its error ends the call. Continues where a lost
  // worker stopped. Errors: the worker's.
  using EmbeddingSink = std::function<Status(size_t text, std::span<const float>)>;
  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink);
  // The worker's SavedPrompts. A call that a lost worker had fails: the worker's states are lost, too.
  Result<int> kept(std::span<const Token> text);
  Result<int> save(std::span<const Token> text, DraftFile& to);
  Result<std::vector<Token>> restore(const InputFile& from);
  Result<int> erase(std::span<const Token> text);

 private:
  struct Impl;
  explicit RemoteService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
