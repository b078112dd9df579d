// What the handlers of all APIs share.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "scheduler/numbers.h"
#include "server/api/jobs.h"
#include "server/api/renderings.h"
#include "server/api/request_log.h"
#include "server/model.h"

namespace gimbal::api {

// What computed the last answers, by their ids.
class Receipts {
 public:
  void keep(std::string id, std::string text);
  std::string find(const std::string& id);  // empty: unknown, or too long ago

 private:
  static constexpr size_t kMost = 1000;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::string>> kept_;
};

class Answer;

// The answers that are computed.
class RunningAnswers {
 public:
  void add(const std::shared_ptr<Answer>&);
  // Ends them, each with an error of its API: for a server that cannot wait any longer.
  void end();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Answer>> answers_;  // and some that have ended
  size_t tidied_ = 0;                           // how many were left when those were taken out
};

struct Services {
  Models& models;
  std::string version;                    // of gimbal
  std::function<std::string()> backends;  // as `gimbal backends --json` prints them
  std::string worker_id = {};             // of a server that is a worker of others; empty: none
  // Opens the code of the backends anew, and tells the same.
  std::function<Result<std::string>()> reload_backends = {};
  std::atomic<bool> reloading{false};  // one at a time

  std::atomic<bool> ready{false}, draining{false};
  std::atomic<int> running{0};  // answers that are computed
  std::atomic<uint64_t> tokens_generated{0}, prompt_tokens{0}, drafted{0}, accepted{0}, worker_restarts{0};
  Receipts receipts = {};
  Jobs jobs = {};
  RunningAnswers answers = {};
  Renderings renderings = {};
  RequestLog log = {};  // not changed while requests are answered

  std::mutex waiting_mutex = {};
  std::vector<std::shared_ptr<http::Exchange>> waiting = {};  // for `ready`
  void set_ready();
};

}  // namespace gimbal::api
