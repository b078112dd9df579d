// The implementation of RemoteService: its thread (remote_service.cpp) and the worker's messages
// (remote_messages.cpp).
#pragma once
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "store/page_server.h"
#include "workers/blame.h"
#include "workers/remote_service.h"

namespace gimbal {

// One thread owns the process and all requests; other threads queue work for it.
struct RemoteService::Impl {
  using Clock = std::chrono::steady_clock;

  struct Request {
    GenerationRequest asked;  // `written` and `scored` grow by each token sent to the sink
    GenerationSink sink;
    Blame blame = {};
    bool sent = false;
    bool makes_way = false;  // cancelled in the worker so that another runs alone; continues later
    bool unwanted = false;   // cancelled for good
  };

  // For a thread that waits for it.
  struct Embedding {
    std::vector<std::vector<Token>> texts;
    size_t received = 0, before = 0;         // `before`: received at the last send
    size_t sent = 0;                         // number of texts sent from `before` on; 0: it waits
    std::vector<std::vector<float>> values;  // of the received texts
    std::optional<Error> failed;
    Blame blame = {};
  };

  // A call of SavedPrompts, for a thread that waits for it.
  struct SavedState {
    wire::ToWorker message;
    int file = -1;  // the waiting thread's
    bool sent = false;
    std::optional<Result<wire::State>> result;
  };

  Impl(WorkerSettings s, WorkerHost h) : settings(std::move(s)), host(std::move(h)) {}

  // ---- shared, under `mutex`
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<uint64_t, Request>> submitted;
  std::vector<uint64_t> cancelled;
  std::map<uint64_t, std::shared_ptr<Embedding>> embeddings;
  std::map<uint64_t, std::shared_ptr<SavedState>> states;
  bool stopping = false, replacing = false;
  bool asks = false;                     // the process waits for Go after it has planned
  std::optional<wire::Planned> planned;  // it waits
  bool admitted = false;                 // Go must be sent
  std::optional<Error> ended;            // why no worker will start again
  WorkerFacts known;
  SchedulerNumbers past;  // of earlier processes

  std::atomic<bool> numbers_wanted = false;  // set by any thread, for the service's thread

  // ---- the thread's own
  WorkerSettings settings;
  const WorkerHost host;
  int wake[2] = {-1, -1};
  std::thread thread;
  std::vector<std::unique_ptr<PageServer>> page_servers;  // of this process
  WorkerProcess process;
  std::map<uint64_t, Request> requests;  // by rising id: the order of arrival
  bool ready = false;
  bool went_on = false;   // this process has sent a result for a request handed on to it
  bool started = false;   // this process has had a request, or has sent a message after its hello
  int failed_starts = 0;  // consecutive processes that were lost before they had started
  uint64_t pings = 0, steps = 0;
  Clock::time_point start_at{}, last_ping, heard, moved;

  Status start_process();
  std::vector<int> serve_pages();
  void end_process();
  void run();
  void turn(bool waits);  // run() repeats it
  void ping_if_due();
  void take_wishes();
  void end_unwanted();
  bool may_be_exchanged();
  void take_another_process();
  void goes_on_unasked();
  void send_waiting();
  void send(uint64_t id, Request& r);
  void send(uint64_t id, Embedding& e, size_t texts);
  int sent();
  void wait();
  std::string trouble();
  std::string read();
  std::string handle(wire::FromWorker& message);
  std::string handle(wire::NextToken& m);
  std::string handle(wire::Scored& m);
  void progressed(uint64_t id, Request& r);
  std::string handle(wire::Ended& m);
  std::string handle(wire::Embedding& m);
  std::string handle(wire::State& m);
  Result<wire::State> call(uint64_t id, wire::ToWorker message, int file);
  void end_states(const Error& why, bool only_sent);
  bool busy();
  void end(uint64_t id, const GenerationEnd& how);
  void lose(const std::string& why);
  void give_up(Error why);
  void poke() const { [[maybe_unused]] const ssize_t n = write(wake[1], "", 1); }
};

}  // namespace gimbal
