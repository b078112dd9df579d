// What the handlers of all APIs share.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "scheduler/numbers.h"
#include "server/api/jobs.h"
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

struct Services {
  Models& models;
  std::string version;                    // of gimbal
  std::function<std::string()> backends;  // as `gimbal backends --json` prints them

  std::atomic<bool> ready{false}, draining{false};
  std::atomic<int> running{0};  // answers that are computed
  std::atomic<uint64_t> tokens_generated{0}, prompt_tokens{0}, drafted{0}, accepted{0}, worker_restarts{0};
  Receipts receipts = {};
  Jobs jobs = {};

  std::mutex waiting_mutex = {};
  std::vector<std::shared_ptr<http::Exchange>> waiting = {};  // for `ready`
  void set_ready();
};

}  // namespace gimbal::api
