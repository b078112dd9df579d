// Generations that one request starts and other requests read.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "server/model.h"

namespace gimbal::api {

struct Services;

class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(Services& s, std::string name, ServedModelPtr m)
      : services(s), id(std::move(name)), model(std::move(m)) {}

  Services& services;
  const std::string id;
  const ServedModelPtr model;
  uint64_t number = 0;  // the engine's id

  GenerationSink sink();
  // Appends the events of tokens from index `told` on and advances it. True once the end event is included.
  bool tell(size_t& told, std::string& out);
  void read_by(std::shared_ptr<http::Exchange>);       // wakes this exchange for each token
  void leave(const std::shared_ptr<http::Exchange>&);  // the job is cancelled when the last reader leaves
  void cancel();
  bool over() {
    const std::lock_guard lock(mutex_);
    return !end_.empty();
  }

 private:
  void add(const std::function<void(Job&)>& change);

  std::mutex mutex_;
  std::vector<std::string> texts_;  // of each token
  std::string error_;               // the event before it, of a text that failed
  std::string end_;                 // the final event; empty: still running
  std::vector<std::shared_ptr<http::Exchange>> readers_;
};

class Jobs {
 public:
  void keep(std::shared_ptr<Job>);
  std::shared_ptr<Job> find(const std::string& id);

 private:
  static constexpr size_t kMost = 256;  // ended jobs that are kept
  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> kept_;
};

}  // namespace gimbal::api
