#include "server/api/pulls.h"

#include <algorithm>

#include "base/format.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMostLines = 1000;  // a server that fails again and again tells no more

}  // namespace

bool PullJob::on(const PullEvent& e) {
  if (cancelled_ || draining_) return false;
  if (e.kind != PullEvent::Progress && e.kind != PullEvent::Checking) {
    if (const std::string text = sentence(e); !text.empty()) tell({{"status", text}});
    return true;
  }
  if (e.file.empty()) return true;  // before the first request
  if (e.kind == PullEvent::Checking) {
    tell({{"status", "verifying sha256 digest"}}, true);
    return true;
  }
  std::string digest;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [file, of] : digests_)
      if (file == e.file || file.ends_with("/" + e.file)) digest = of;
  }
  Json line = {{"status", format("pulling {}", digest.empty() ? e.file : digest.substr(7, 12))}};
  if (!digest.empty()) line["digest"] = digest;
  line["total"] = e.total, line["completed"] = e.done;
  tell(line, true);
  return true;
}

void PullJob::tell(const Json& line, bool replaces) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    const std::string about = replaces ? line["status"].get<std::string>() : "";
    const bool same = !about.empty() && about == about_;
    if (!same && lines_.size() >= kMostLines) return;
    about_ = about;
    if (same) lines_.back() = dump(line), revision_++;
    else lines_.push_back(dump(line)), revision_ = 0;
  }
  wake();
}

void PullJob::end(const Status& result) {
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(dump(result ? Json{{"status", "success"}} : Json{{"error", result.error().message}}));
    revision_ = 0, over_ = true, result_ = result;
  }
  wake();
}

bool PullJob::read(Seen& seen, std::string& out) {
  const std::lock_guard lock(mutex_);
  if (seen.lines > 0 && seen.lines == lines_.size() && seen.revision != revision_)
    out += lines_.back() + "\n";
  for (; seen.lines < lines_.size(); seen.lines++) out += lines_[seen.lines] + "\n";
  seen.revision = revision_;
  return over_;
}

Status PullJob::result() {
  const std::lock_guard lock(mutex_);
  return result_;
}

bool PullJob::over() {
  const std::lock_guard lock(mutex_);
  return over_;
}

void PullJob::files(std::vector<std::pair<std::string, std::string>> digests) {
  const std::lock_guard lock(mutex_);
  digests_ = std::move(digests);
}

bool PullJob::read_by(std::shared_ptr<http::Exchange> reader) {
  const std::lock_guard lock(mutex_);
  if (cancelled_) return false;
  readers_.push_back(std::move(reader));
  return true;
}

void PullJob::leave(const std::shared_ptr<http::Exchange>& reader) {
  const std::lock_guard lock(mutex_);
  std::erase(readers_, reader);
  if (readers_.empty()) cancelled_ = true;
}

void PullJob::wake() {
  std::vector<std::shared_ptr<http::Exchange>> readers;
  {
    const std::lock_guard lock(mutex_);
    readers = readers_;
  }
  for (const auto& r : readers) r->wake();
}

std::shared_ptr<PullJob> Pulls::start(const std::string& name, const std::shared_ptr<http::Exchange>& reader,
                                      std::function<Status(PullJob&)> work) {
  const std::lock_guard lock(mutex_);
  for (auto at = running_.begin(); at != running_.end();) {
    if (!at->job->over()) {
      if (at->job->name == name && at->job->read_by(reader)) return at->job;
      at++;
      continue;
    }
    at->thread.join();
    at = running_.erase(at);
  }
  if (running_.size() >= kMost) return nullptr;
  auto job = std::make_shared<PullJob>(name, draining_);
  (void)job->read_by(reader);
  running_.push_back({job, std::thread([job, work = std::move(work)] { job->end(work(*job)); })});
  return job;
}

void Pulls::end() {
  const std::lock_guard lock(mutex_);
  for (Running& r : running_) r.job->cancel();
  for (Running& r : running_) r.thread.join();
  running_.clear();
}

}  // namespace gimbal::api
