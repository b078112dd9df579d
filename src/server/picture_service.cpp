#include "server/picture_service.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/format.h"

namespace gimbal {

PictureService::PictureService(GenerationService& text, int context, Encode encode)
    : text_(text), context_(context), encode_(std::move(encode)) {}

PictureService::~PictureService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (Job& job : waiting_) {
    GenerationEnd end;
    end.finish = Finish::Cancelled;
    job.sink.end(end);
  }
}

uint64_t PictureService::Job::bytes() const {
  uint64_t sum = 0;
  for (const auto& file : request.pictures) sum += file->size();
  return sum;
}

Status PictureService::submit(uint64_t id, GenerationRequest request, GenerationSink sink) {
  if (request.pictures.empty()) return text_.submit(id, std::move(request), std::move(sink));
  const auto places = size_t(std::count(request.prompt.begin(), request.prompt.end(), kNoToken));
  if (!request.embeddings.empty() || places != request.pictures.size())
    return Error{Code::Usage,
                 format("the prompt has {} places for {} pictures", places, request.pictures.size())};
  if (request.scores_prompt)
    return Error{Code::Usage, "a prompt with pictures has no probabilities of its own", "leave 'echo' out"};
  Job job{id, std::move(request), std::move(sink)};
  std::vector<PictureRowsPtr> recent;
  for (const auto& file : job.request.pictures) job.digests.push_back(picture_digest(*file));
  std::unique_lock lock(mutex_);
  for (const std::string& digest : job.digests)
    if (auto rows = recent_.find(digest)) recent.push_back(std::move(rows));
  if (recent.size() == job.digests.size()) {
    lock.unlock();
    expand(job.request, recent);
    return text_.submit(id, std::move(job.request), std::move(job.sink));
  }
  const uint64_t bytes = job.bytes();
  if (waiting_.size() >= kMostWaiting || (!waiting_.empty() && waiting_bytes_ + bytes > kWaitingBytes))
    return Error{Code::OutOfMemory, format("{} requests with pictures wait already", waiting_.size()),
                 "try again in a moment", reason::kQueueFull};
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return Error{Code::OutOfMemory, "the system cannot create a thread for pictures", "end other programs"};
  }
  waiting_bytes_ += bytes;
  waiting_.push_back(std::move(job));
  wake_.notify_all();
  return Done{};
}

void PictureService::cancel(uint64_t id) {
  std::unique_lock lock(mutex_);
  if (current_ == id) cancelled_ = true;
  const auto at = std::find_if(waiting_.begin(), waiting_.end(), [&](const Job& j) { return j.id == id; });
  if (at == waiting_.end()) {
    lock.unlock();
    return text_.cancel(id);
  }
  waiting_bytes_ -= at->bytes();
  const GenerationSink sink = std::move(at->sink);
  waiting_.erase(at);
  lock.unlock();
  GenerationEnd end;
  end.finish = Finish::Cancelled;
  sink.end(end);
}

bool PictureService::is_cancelled() {
  const std::lock_guard lock(mutex_);
  return cancelled_ || stopping_;
}

void PictureService::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Job job = next();
    current_ = job.id, cancelled_ = false;
    lock.unlock();
    serve(std::move(job));
    lock.lock();
    current_ = 0;
  }
}

// The oldest of another client than the last one, if there is any.
PictureService::Job PictureService::next() {
  auto at = std::find_if(waiting_.begin(), waiting_.end(),
                         [&](const Job& j) { return j.request.client != last_client_; });
  if (at == waiting_.end()) at = waiting_.begin();
  Job job = std::move(*at);
  waiting_.erase(at);
  waiting_bytes_ -= job.bytes();
  last_client_ = job.request.client;
  return job;
}

void PictureService::serve(Job job) {
  const auto rows = rows_of(job);
  if (is_cancelled()) {
    GenerationEnd end;
    end.finish = Finish::Cancelled;
    return job.sink.end(end);
  }
  if (!rows) return job.sink.failed(rows.error());
  expand(job.request, *rows);
  const auto failed = job.sink.failed;
  if (auto ok = text_.submit(job.id, std::move(job.request), std::move(job.sink)); !ok)
    return failed(ok.error());
  // It may have been cancelled before the other service knew it.
  if (is_cancelled()) text_.cancel(job.id);
}

Result<std::vector<PictureRowsPtr>> PictureService::rows_of(Job& job) {
  std::vector<PictureRowsPtr> all;
  for (size_t i = 0; i < job.digests.size() && !is_cancelled(); i++) {
    std::unique_lock lock(mutex_);
    PictureRowsPtr rows = recent_.find(job.digests[i]);
    lock.unlock();
    if (!rows) {
      // From now on its pictures may be the cause of a crash.
      if (job.sink.begun) std::exchange(job.sink.begun, {})();
      auto made = encode_(*job.request.pictures[i], [this](size_t, size_t) { return !is_cancelled(); });
      if (!made) {
        Error e = made.error();
        e.message = format("picture {} of {}: {}", i + 1, job.digests.size(), e.message);
        return e;
      }
      rows = std::move(*made);
      lock.lock();
      recent_.add(job.digests[i], rows);
    }
    all.push_back(std::move(rows));
  }
  return all;
}

void PictureService::expand(GenerationRequest& r, std::span<const PictureRowsPtr> pictures) const {
  const Inputs all = with_pictures(r.prompt, pictures);
  r.prompt = all.tokens(), r.embeddings = all.embeddings();
  r.pictures.clear();
  // The caller did not know the number of rows.
  const int64_t room = int64_t(context_) - int64_t(r.prompt.size()) + 1;
  if (room > 0 && r.max_tokens > room) r.max_tokens = int(room);
}

}  // namespace gimbal
