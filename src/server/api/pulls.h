// Downloads of models that clients request. Each has a thread of its own; requests for the same model share
// it and read its progress.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "fetch/pull_event.h"
#include "server/http/message.h"

namespace gimbal::api {

class PullJob : public PullWatch, public std::enable_shared_from_this<PullJob> {
 public:
  // Cancelled while `draining`.
  PullJob(std::string n, const std::atomic<bool>& draining) : name(std::move(n)), draining_(draining) {}
  const std::string name;

  bool on(const PullEvent&) override;
  // A line for the clients. A line about the same thing as the last one replaces it (`replaces`).
  void tell(const Json& line, bool replaces = false);
  // The last line: "success", or the error.
  void end(const Status&);

  // Appends the lines that this reader has not seen. True once the last one is included.
  struct Seen {
    size_t lines = 0;
    uint64_t revision = 0;  // of the last one
  };
  bool read(Seen&, std::string& out);
  Status result();  // after the end
  bool over();

  // False: the job is cancelled.
  [[nodiscard]] bool read_by(std::shared_ptr<http::Exchange>);
  void leave(const std::shared_ptr<http::Exchange>&);  // it is cancelled when the last reader leaves
  void cancel() { cancelled_ = true; }
  // `digests`: "sha256:..." by file, for the lines.
  void files(std::vector<std::pair<std::string, std::string>> digests);

 private:
  void wake();

  const std::atomic<bool>& draining_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::vector<std::string> lines_;
  uint64_t revision_ = 0;
  std::string about_;  // the subject of the last line, where another one may replace it
  bool over_ = false;
  Status result_ = Done{};
  std::vector<std::pair<std::string, std::string>> digests_;
  std::vector<std::shared_ptr<http::Exchange>> readers_;
};

class Pulls {
 public:
  explicit Pulls(const std::atomic<bool>& draining) : draining_(draining) {}
  ~Pulls() { end(); }
  // The running job of this name that is not cancelled, or a new one, which runs `work` on a thread. nullptr:
  // too many are running.
  // The caller reads the job from then on.
  std::shared_ptr<PullJob> start(const std::string& name, const std::shared_ptr<http::Exchange>& reader,
                                 std::function<Status(PullJob&)> work);
  void end();  // cancels all and waits for them

 private:
  static constexpr size_t kMost = 4;
  const std::atomic<bool>& draining_;
  struct Running {
    std::shared_ptr<PullJob> job;
    std::thread thread;
  };
  std::mutex mutex_;
  std::vector<Running> running_;  // includes some that have ended
};

}  // namespace gimbal::api
