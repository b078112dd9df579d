// Registers this worker with a hive. A hive starts workers and gives them work. The protocol is that
// of llama-orch (github.com/veighnsche/llama-orch), whose workers take --worker-id, --port and
// --hive-url:
//   POST HIVE/v1/workers/ready  {worker_id, url, model_ref, backend, device}      once
//   POST HIVE/v1/heartbeat      {worker_id, timestamp, health_status}             then, every half minute
// `health_status` is "healthy", or "degraded" while draining; the protocol has no message for the end.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fetch/http.h"

namespace gimbal::worker {

struct HiveOptions {
  std::string url;        // "http://hive:9200"
  std::string worker_id;  // is_worker_id()
  std::string model, backend;
  int device = 0;
  double interval = 30;  // seconds between heartbeats
  double patience = 5;   // timeout of a request, in seconds
  // Seconds before the first retry; doubles each time, until the hive answers.
  double first_pause = 1, longest_pause = 60;
  std::function<void(const std::string&)> log = {};  // for people; from another thread
};

// Runs on its own thread, so a slow or failing hive does not disturb the worker.
class Hive {
 public:
  // Opens no connection yet. Errors: Usage for anything but an http or https address, or if it has a query;
  // those of can_fetch().
  static Result<std::unique_ptr<Hive>> create(HiveOptions);
  // Ends the current message within a second; after draining() it may send one more.
  ~Hive();

  // Starts. `address`: the URL of the worker's server, "http://127.0.0.1:8080".
  void ready(const std::string& address);
  // Sends the final heartbeat. Does not wait.
  void draining();

 private:
  Hive(HiveOptions o, Url base) : o_(std::move(o)), base_(std::move(base)) {}
  void run();
  Result<long> post(const char* path, const std::string& json);
  bool registered();
  bool heartbeat(bool healthy);
  bool pause(double seconds);
  void failed(const std::string& why);
  bool go_on();

  const HiveOptions o_;
  const Url base_;
  std::string address_;
  bool said_failed_ = false, said_known_ = false;  // used by the thread only

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  bool stopping_ = false;
  double last_word_by_ = 0;  // deadline of the final heartbeat; 0: not draining
  std::thread thread_;
};

// 1 to 128 letters, digits, '-', '_' and '.'; starts with a letter or digit.
bool is_worker_id(const std::string&);

}  // namespace gimbal::worker
