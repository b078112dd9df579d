// Chat templates come with model files and run in this process, so what they take is bounded, all of them
// together. A rendering begins with little: what any ordinary conversation needs. One that needs more is made
// anew with the whole limits, but one at a time, on a thread to which every other one comes first: it cannot
// hold up other answers. Turns go around the clients, and around the models of each.
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

// A few at a time; who has to wait has his turn after others that he shares no name with.
class Turns {
 public:
  Turns(int at_once, size_t most, size_t most_each) : free_(at_once), most_(most), most_each_(most_each) {}

  // Waits for a turn. False: too many wait already, in all or of this name.
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
  // Calls `render` with the limits to keep to, perhaps twice: what counts is its last result. `bytes`: of
  // what it reads. Errors: those of `render`; Failed (templates-busy), without a last result, when too many
  // wait that need much, in all or of this client.
  Status run(const std::string& client, const std::string& model, size_t bytes,
             const std::function<Status(const RenderLimits&)>& render);

  // Of all renderings at a time: kQuickAtOnce with the first of these, and one with the second.
  static constexpr RenderLimits kQuick = {250'000, size_t(256) << 10, size_t(16) << 20};
  static constexpr RenderLimits kWhole = {20'000'000, size_t(16) << 20, size_t(256) << 20};

 private:
  static constexpr int kQuickAtOnce = 4;
  static constexpr size_t kSlowWaiting = 16, kSlowWaitingEach = 4;
  static constexpr size_t kSmall = 32 << 10;  // bytes of a request that needs little, if its template is sane

  bool is_heavy(const std::string& model);

  Turns quick_{kQuickAtOnce, SIZE_MAX, SIZE_MAX}, slow_{1, kSlowWaiting, kSlowWaitingEach};
  std::mutex mutex_;
  std::set<std::string>
      heavy_;  // models whose templates need much for little: these do not begin with little
};

}  // namespace gimbal::api
