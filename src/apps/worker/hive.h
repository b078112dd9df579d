// Tells a hive that this worker is there. A hive is what starts workers and gives them work; its words are
// those of llama-orch (github.com/veighnsche/llama-orch), whose workers take --worker-id, --port and
// --hive-url:
//   POST HIVE/v1/workers/ready  {worker_id, url, model_ref, backend, device}      once
//   POST HIVE/v1/heartbeat      {worker_id, timestamp, health_status}             then, every half minute
// `health_status` is "healthy", or "degraded" once no new requests are taken; there is no word for the end.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fetch/post.h"

namespace gimbal::worker {

struct HiveOptions {
  std::string url;        // "http://hive:9200"
  std::string worker_id;  // is_worker_id()
  std::string model, backend;
  int device = 0;
  double interval = 30;  // seconds between heartbeats
  double patience = 5;   // seconds for an answer
  // Seconds before the next try; each time twice as many, until the hive answers.
  double first_pause = 1, longest_pause = 60;
  std::function<void(const std::string&)> log = {};  // for people; from another thread
};

// What a hive does, or fails to do, disturbs nobody: a thread of its own speaks to it.
class Hive {
 public:
  // Opens nothing yet. Errors: Usage for what is no address of http or https, or has a query; those of
  // can_post().
  static Result<std::unique_ptr<Hive>> create(HiveOptions);
  // Ends what is being said, within a second; draining() may have made it say one thing more.
  ~Hive();

  // Begins. `address`: where the worker is asked for its work, "http://127.0.0.1:8080".
  void ready(const std::string& address);
  // The last word. Does not wait.
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
  bool said_failed_ = false, said_known_ = false;  // of the thread

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool stopping_ = false;
  double last_word_by_ = 0;  // when it must be out; 0: nobody drains
  std::thread thread_;
};

// 1 to 128 letters, digits, '-', '_' and '.', a letter or a digit first.
bool is_worker_id(const std::string&);

}  // namespace gimbal::worker
