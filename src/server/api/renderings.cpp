#include "server/api/renderings.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace gimbal::api {
namespace {

// Every thread of the engine, and every one that answers, comes before this one.
void come_last() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, 0, 19);  // of this thread alone
#endif
}

}  // namespace

bool Turns::take(const std::string& name) {
  std::unique_lock lock(mutex_);
  if (free_ > 0) return free_--, true;
  auto line = std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.name == name; });
  if (waiting_ >= most_ || (line != lines_.end() && line->waiting.size() >= most_each_)) return false;
  if (line == lines_.end()) line = lines_.insert(line, {name, {}});
  bool mine = false;
  line->waiting.push_back(&mine);
  waiting_++;
  changed_.wait(lock, [&] { return mine; });
  return true;
}

void Turns::give_back() {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.empty()) {
      free_++;
      return;
    }
    Line& first = lines_.front();
    *first.waiting.front() = true;
    first.waiting.pop_front();
    waiting_--;
    if (first.waiting.empty()) lines_.pop_front();
    else lines_.splice(lines_.end(), lines_, lines_.begin());
  }
  changed_.notify_all();
}

size_t Turns::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool Renderings::is_heavy(const std::string& model) {
  const std::lock_guard lock(mutex_);
  return heavy_.contains(model);
}

Status Renderings::run(const std::string& client, const std::string& model, size_t bytes,
                       const std::function<Status(const RenderLimits&)>& render) {
  const std::string name = client + '\n' + model;
  if (!is_heavy(model)) {
    quick_.take(name);  // these are short, so it is never refused
    Status done = render(kQuick);
    quick_.give_back();
    if (done || done.error().reason != std::string_view(reason::kTemplateLimit)) return done;
    if (bytes < kSmall) {
      const std::lock_guard lock(mutex_);
      heavy_.insert(model);
    }
  }
  if (!slow_.take(name))
    return Error{Code::Failed, "too many conversations wait whose chat template needs much time or memory",
                 "", reason::kTemplatesBusy};
  Status done = Done{};
  std::thread([&] {
    come_last();
    done = render(kWhole);
  }).join();
  slow_.give_back();
  return done;
}

}  // namespace gimbal::api
