#include "workers/remote_service.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "workers/remote_service_impl.h"

namespace gimbal {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kMaxUnread = size_t(256) << 20;  // bytes that a worker has not read

}  // namespace

Status RemoteService::Impl::start_process() {
  if (settings.memory) settings.load.promised = settings.memory->of_others();
  auto started = WorkerProcess::start(settings.command);
  if (!started) return started.error();
  process = std::move(*started);
  process.channel.send(encode(wire::ToWorker(settings.load)));
  if (settings.memory) settings.memory->is_process(process.pid());
  heard = moved = last_ping = Clock::now();
  const std::lock_guard lock(mutex);
  known.pid = int(process.pid());
  return Done{};
}

void RemoteService::Impl::end_process() {
  process.kill();
  if (settings.memory) settings.memory->is_process(0);
}

void RemoteService::Impl::run() {
  for (;;) {
    take_wishes();
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
    }
    if (!process && Clock::now() >= start_at) {
      if (auto started = start_process(); !started) give_up(started.error());
    }
    wait();
    if (!process) continue;
    if (const std::string why = trouble(); !why.empty()) lose(why);
  }
  process.stop(1000);
  give_up({Code::Failed, "the server is shutting down", ""});
}

// Takes the work that other threads queued.
void RemoteService::Impl::take_wishes() {
  std::vector<std::pair<uint64_t, Request>> fresh;
  std::vector<uint64_t> unwanted;
  {
    const std::lock_guard lock(mutex);
    fresh.swap(submitted), unwanted.swap(cancelled);
    if (replacing && may_be_exchanged()) take_another_process();
    if (std::exchange(admitted, false) && process) process.channel.send(encode(wire::ToWorker(wire::Go{})));
  }
  for (auto& [id, r] : fresh)
    if (!requests.try_emplace(id, std::move(r)).second)
      r.sink.failed({Code::Usage, format("there is a request {} already", id), "give each its own id"});
  if (ready) send_waiting();
  for (uint64_t id : unwanted) {
    const auto at = requests.find(id);
    if (at == requests.end()) continue;
    at->second.unwanted = true;
    if (at->second.sent) process.channel.send(encode(wire::ToWorker(wire::Cancel{id})));
    else
      end(id, {Finish::Cancelled, "", "", int(at->second.asked.prompt.size()), 0,
               int(at->second.asked.written.size())});
  }
}

// Repeated exchanges must leave workers time to compute. Before the next exchange, at least one of the
// requests handed on to this worker, and each of them that it has begun, gets a token. With the mutex
// held.
bool RemoteService::Impl::may_be_exchanged() {
  if (!ready) return true;
  bool any = false, begun = false;
  const auto consider = [&](const Blame& b) { any |= b.handed_on, begun |= b.handed_on && b.begun; };
  for (auto& [id, r] : requests) consider(r.blame);
  for (auto& [id, e] : embeddings) consider(e->blame);
  return !any || (went_on && !begun);
}

// With the mutex held.
void RemoteService::Impl::take_another_process() {
  end_process();
  ready = replacing = went_on = known.ready = false;
  goes_on_unasked();
  known.pid = failed_starts = 0;
  known.numbers = past = known.numbers.past();
  ended.reset();
  start_at = Clock::now();
  for (auto& [id, r] : requests) r.sent = r.blame.begun = false, r.blame.handed_on = true;
  for (auto& [id, e] : embeddings) e->sent = 0, e->blame.begun = false, e->blame.handed_on = true;
}

// With the mutex held.
void RemoteService::Impl::goes_on_unasked() {
  asks = admitted = false;
  planned.reset();
}

// Sends all of them; while there are suspects, one of these alone, the least blamed first.
void RemoteService::Impl::send_waiting() {
  const std::lock_guard lock(mutex);
  const Blame* alone = nullptr;
  const auto consider = [&](const Blame& b) {
    if (b.suspect && (!alone || b.losses < alone->losses)) alone = &b;
  };
  for (auto& [id, r] : requests) consider(r.blame);
  for (auto& [id, e] : embeddings) consider(e->blame);
  if (alone && sent() > 0) return;
  for (auto& [id, r] : requests)
    if (!r.sent && (!alone || alone == &r.blame)) send(id, r);
  for (auto& [id, e] : embeddings)
    if (!e->sent && (!alone || alone == &e->blame)) send(id, *e, alone ? 1 : e->texts.size() - e->received);
}

// The number of requests that the worker has; with the mutex held.
int RemoteService::Impl::sent() {
  return int(std::count_if(requests.begin(), requests.end(), [](auto& r) { return r.second.sent; }) +
             std::count_if(embeddings.begin(), embeddings.end(), [](auto& e) { return e.second->sent > 0; }));
}

void RemoteService::Impl::send(uint64_t id, Request& r) {
  process.channel.send(encode(wire::ToWorker(wire::Submit{id, r.asked})));
  r.sent = true, r.makes_way = r.blame.begun = false;
}

void RemoteService::Impl::send(uint64_t id, Embedding& e, size_t texts) {
  e.before = e.received, e.sent = texts, e.blame.begun = true;
  const auto first = e.texts.begin() + ptrdiff_t(e.received);
  process.channel.send(encode(wire::ToWorker(wire::Embed{id, {first, first + ptrdiff_t(texts)}})));
}

void RemoteService::Impl::wait() {
  if (ready && (numbers_wanted.exchange(false) || Clock::now() - last_ping >= settings.ping_every)) {
    last_ping = Clock::now();
    process.channel.send(encode(wire::ToWorker(wire::Ping{++pings})));
  }
  pollfd watched[2] = {{wake[0], POLLIN, 0},
                       {process.channel.fd(), short(POLLIN | (process.channel.pending() ? POLLOUT : 0)), 0}};
  auto until = ready ? last_ping + settings.ping_every : Clock::now() + 1s;
  if (!process && start_at > Clock::now()) until = std::min(until, start_at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  poll(watched, process ? 2 : 1, int(std::clamp<int64_t>(left, 0, 1000)));
  char drained[64];
  while (::read(wake[0], drained, sizeof drained) > 0) {}
}

// Why the worker must be replaced; empty: no need.
std::string RemoteService::Impl::trouble() {
  // Messages sent before the end count.
  const bool open = process.channel.fill();
  if (std::string why = read(); !why.empty()) return why;
  if (!process) return "";
  if (!open || !process.channel.flush()) {
    const auto pid = process.pid();
    return format("worker {} {}", pid, process.kill());
  }
  if (process.channel.overlong()) return "it sent a message without an end";
  if (process.channel.pending_bytes() > kMaxUnread) return "it does not read its messages";
  const auto now = Clock::now();
  if (!ready) return now - heard > settings.longest_load ? "it does not become ready" : "";
  if (now - heard > settings.silence) return "it does not answer";
  if (!busy()) moved = now;
  return now - moved > settings.standstill ? "it makes no progress although requests wait" : "";
}

bool RemoteService::Impl::busy() {
  const std::lock_guard lock(mutex);
  return sent() > 0;
}

// The worker is lost. Another one takes over its requests.
void RemoteService::Impl::lose(const std::string& why) {
  end_process();
  ready = false;
  // The first one is replaced at once: a waiting client should not notice.
  constexpr Clock::duration kPause[] = {0s, 200ms, 2s};
  start_at = Clock::now() + kPause[std::min(failed_starts, 2)];
  failed_starts++;
  {
    const std::lock_guard lock(mutex);
    known.ready = false, known.pid = 0, known.restarts++;
    goes_on_unasked();
    known.numbers = past = known.numbers.past();
  }
  if (settings.replaced) settings.replaced(why);
  const Error lost{
      Code::Failed,
      format("the worker process was lost {} times while it computed this answer alone: {}",
             settings.attempts, why),
      "Send the request again; if this happens again, report it together with the server's log."};
  bool alone;
  {
    const std::lock_guard lock(mutex);
    alone = sent() == 1;
  }
  for (auto at = requests.begin(); at != requests.end();) {
    Request& r = at->second;
    if (std::exchange(r.sent, false) && !r.blame.lost(alone, settings.attempts)) {
      const GenerationSink sink = std::move(r.sink);
      at = requests.erase(at);
      sink.failed(lost);
      continue;
    }
    ++at;
  }
  {
    const std::lock_guard lock(mutex);
    for (auto at = embeddings.begin(); at != embeddings.end();) {
      Embedding& e = *at->second;
      if (std::exchange(e.sent, 0) && !e.blame.lost(alone, settings.attempts)) {
        e.failed = lost;
        at = embeddings.erase(at);
      } else {
        ++at;
      }
    }
  }
  changed.notify_all();
  if (failed_starts > settings.attempts)
    give_up({Code::Failed, format("no worker process becomes ready: {}", why),
             "The server's log says more; start it again."});
}

void RemoteService::Impl::give_up(Error why) {
  end_process();
  if (settings.memory) settings.memory->gives_up();
  ready = false;
  start_at = Clock::time_point::max();
  std::vector<std::pair<uint64_t, Request>> rest;
  {
    const std::lock_guard lock(mutex);
    if (!ended) ended = why;
    known.ready = false, known.pid = 0;
    rest.swap(submitted);
    for (auto& [id, e] : embeddings) e->failed = why;
    embeddings.clear();
  }
  changed.notify_all();
  for (auto& [id, r] : requests) r.sink.failed(why);
  for (auto& [id, r] : rest) r.sink.failed(why);
  requests.clear();
}

// ---- called by other threads

RemoteService::RemoteService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<RemoteService>> RemoteService::start(WorkerSettings settings) {
  auto impl = std::make_unique<Impl>(std::move(settings));
  if (pipe2(impl->wake, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error{Code::Failed, "no pipe can be opened for a worker process", ""};
  Impl* const it = impl.get();
  it->asks = it->settings.asks_for_memory;
  std::unique_ptr<RemoteService> out(new RemoteService(std::move(impl)));
  if (auto started = it->start_process(); !started) return started.error();
  it->thread = std::thread([it] { it->run(); });
  return out;
}

RemoteService::~RemoteService() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->poke();
  if (impl_->thread.joinable()) impl_->thread.join();
  for (int fd : impl_->wake) close(fd);
}

Status RemoteService::wait_ready() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return !impl_->replacing && (impl_->known.ready || impl_->ended); });
  if (impl_->ended) return *impl_->ended;
  return Done{};
}

Result<std::optional<wire::Planned>> RemoteService::wait_planned() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock,
                      [&] { return impl_->planned || !impl_->asks || impl_->known.ready || impl_->ended; });
  if (impl_->ended) return *impl_->ended;
  return impl_->planned;
}

void RemoteService::admit() {
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->planned) return;
    impl_->planned.reset(), impl_->admitted = true;
  }
  impl_->poke();
}

void RemoteService::replace() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->replacing = true;
  }
  impl_->poke();
}

WorkerFacts RemoteService::facts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known;
}

void RemoteService::ask_numbers() {
  impl_->numbers_wanted = true;
  impl_->poke();
}

Status RemoteService::embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) {
  if (texts.empty()) return Done{};
  const auto e = std::make_shared<Impl::Embedding>();
  e->texts.assign(texts.begin(), texts.end());
  std::unique_lock lock(impl_->mutex);
  if (impl_->ended) return *impl_->ended;
  impl_->embeddings.emplace(new_request_id(), e);
  lock.unlock();
  impl_->poke();
  for (size_t i = 0; i < texts.size(); i++) {
    lock.lock();
    impl_->changed.wait(lock, [&] { return e->received > i || e->failed; });
    if (e->received <= i) return *e->failed;
    const std::vector<float> values = std::move(e->values[i]);
    lock.unlock();
    if (auto ok = sink(i, values); !ok) return ok;
  }
  return Done{};
}

Status RemoteService::submit(uint64_t id, GenerationRequest request, GenerationSink sink) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->ended) return *impl_->ended;
    impl_->submitted.emplace_back(id, Impl::Request{std::move(request), std::move(sink)});
  }
  impl_->poke();
  return Done{};
}

void RemoteService::cancel(uint64_t id) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->cancelled.push_back(id);
  }
  impl_->poke();
}

}  // namespace gimbal
