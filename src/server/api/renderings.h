// Bounds the total cost of chat templates, which come with model files and run in this process. A rendering
// starts with small limits, enough for an ordinary conversation. If they do not suffice, it is repeated
// with the full limits: one at a time, on a thread of the lowest priority, so that it cannot delay other
// answers. Turns rotate over the clients, and over each client's models.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <set>
#include <string>

#include "base/result.h"
#include "template/template.h"

namespace gimbal::reason {
inline constexpr const char* kTemplatesBusy = "templates-busy";
}

namespace gimbal::api {

// Admits a few callers at a time. A caller waits behind others with different names first (round robin).
class Turns {
 public:
  Turns(int at_once, size_t most, size_t most_each) : free_(at_once), most_(most), most_each_(most_each) {}

  // Waits for a turn. False: too many are waiting, in total or with this name.
  bool take(const std::string& name);
  void give_back();  // once for each take() that was true
  size_t waiting();  // now

 private:
  struct Line {
    std::string name;
    std::deque<bool*> waiting;  // each is set when it has its turn
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Line> lines_;  // the next turn is the first one's
  int free_;
  const size_t most_, most_each_;
  size_t waiting_ = 0;
};

class Renderings {
 public:
  // Calls `render` with the limits to keep, at most twice; its last result counts. `bytes`: its input size.
  // Errors: those of `render`; Failed (templates-busy), without a last result, if too many expensive
  // renderings wait, in total or for this client.
  Status run(const std::string& client, const std::string& model, size_t bytes,
             const std::function<Status(const RenderLimits&)>& render);

  // Limits of concurrent renderings: kQuickAtOnce of them with kQuick, and one with kWhole.
  static constexpr RenderLimits kQuick = {250'000, size_t(256) << 10, size_t(16) << 20};
  static constexpr RenderLimits kWhole = {20'000'000, size_t(16) << 20, size_t(256) << 20};

 private:
  static constexpr int kQuickAtOnce = 4;
  static constexpr size_t kSlowWaiting = 16, kSlowWaitingEach = 4;
  static constexpr size_t kSmall = 32 << 10;  // request bytes below which a sane template is cheap

  bool is_heavy(const std::string& model);

  Turns quick_{kQuickAtOnce, SIZE_MAX, SIZE_MAX}, slow_{1, kSlowWaiting, kSlowWaitingEach};
  std::mutex mutex_;
  std::set<std::string>
      heavy_;  // models with expensive templates even for small requests: they start with kWhole at once
};

}  // namespace gimbal::api
