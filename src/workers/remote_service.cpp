#include "workers/remote_service.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "workers/remote_service_impl.h"

namespace gimbal {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kMaxUnread = size_t(256) << 20;        // bytes that a worker has not read
constexpr int kEnding = 1000, kEndingWithPages = 5000;  // milliseconds; then pages that wait are lost

}  // namespace

// The worker's ends of new sockets. Without sockets, the worker gets no pages.
std::vector<int> RemoteService::Impl::serve_pages() {
  std::vector<int> theirs;
  if (!settings.pages) return theirs;
  for (size_t i = 0; i < std::size(kPageSockets); i++) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return theirs;
    page_servers.push_back(std::make_unique<PageServer>(ends[0], settings.pages));
    theirs.push_back(ends[1]);
  }
  return theirs;
}

Status RemoteService::Impl::start_process() {
  if (settings.memory) settings.load.promised = settings.memory->of_others();
  const std::vector<int> files = serve_pages();
  auto made = host.start(settings.command, files);
  for (const int file : files) close(file);
  if (!made) return made.error();
  process = std::move(*made);
  process.channel.send(encode(wire::ToWorker(settings.load)));
  if (settings.memory) settings.memory->is_process(process.pid());
  heard = moved = last_ping = host.now();
  started = false;
  const std::lock_guard lock(mutex);
  known.pid = int(process.pid());
  return Done{};
}

void RemoteService::Impl::end_process() {
  process.kill();
  page_servers.clear();
  if (settings.memory) settings.memory->is_process(0);
}

void RemoteService::Impl::run() {
  for (;;) {
    take_wishes();
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
    }
    turn(true);
  }
  process.stop(settings.pages ? kEndingWithPages : kEnding);
  give_up({Code::Failed, "the server is shutting down", ""});
}

// Once what run() repeats; `waits`: until something happens.
void RemoteService::Impl::turn(bool waits) {
  if (!process && host.now() >= start_at) {
    if (auto ok = start_process(); !ok) give_up(ok.error());
  }
  ping_if_due();
  if (waits) wait();
  if (!process) return;
  if (const std::string why = trouble(); !why.empty()) lose(why);
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
  for (uint64_t id : unwanted) {
    const auto at = requests.find(id);
    if (at == requests.end() || std::exchange(at->second.unwanted, true)) continue;
    if (at->second.sent) process.channel.send(encode(wire::ToWorker(wire::Cancel{id})));
  }
  end_unwanted();
  if (ready) send_waiting();
}

// Ends the cancelled requests that no worker has: their worker was lost before it ended them, or none had
// them yet.
void RemoteService::Impl::end_unwanted() {
  std::vector<uint64_t> ids;
  for (const auto& [id, r] : requests)
    if (r.unwanted && !r.sent) ids.push_back(id);
  for (uint64_t id : ids) {
    const GenerationRequest& asked = requests.at(id).asked;
    end(id, {.finish = Finish::Cancelled,
             .prompt_tokens = int(asked.prompt.size()),
             .tokens = int(asked.written.size())});
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
  end_states({Code::Failed, "the worker process was exchanged meanwhile", "try again"}, true);
  known.pid = failed_starts = 0;
  known.numbers = past = known.numbers.past();
  ended.reset();
  start_at = host.now();
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
  for (auto& [id, s] : states)
    if (!std::exchange(s->sent, true)) process.channel.send(encode(s->message), s->file);
}

// With the mutex held.
void RemoteService::Impl::end_states(const Error& why, bool only_sent) {
  for (auto at = states.begin(); at != states.end();) {
    if (only_sent && !at->second->sent) {
      ++at;
      continue;
    }
    at->second->result = why;
    at = states.erase(at);
  }
  changed.notify_all();
}

// The number of requests that the worker has; with the mutex held.
int RemoteService::Impl::sent() {
  return int(std::count_if(requests.begin(), requests.end(), [](auto& r) { return r.second.sent; }) +
             std::count_if(embeddings.begin(), embeddings.end(), [](auto& e) { return e.second->sent > 0; }));
}

void RemoteService::Impl::send(uint64_t id, Request& r) {
  process.channel.send(encode(wire::ToWorker(wire::Submit{id, r.asked})));
  started = r.sent = true, r.makes_way = r.blame.begun = false;
}

void RemoteService::Impl::send(uint64_t id, Embedding& e, size_t texts) {
  e.before = e.received, e.sent = texts, started = e.blame.begun = true;
  const auto first = e.texts.begin() + ptrdiff_t(e.received);
  process.channel.send(encode(wire::ToWorker(wire::Embed{id, {first, first + ptrdiff_t(texts)}})));
}

void RemoteService::Impl::ping_if_due() {
  if (!ready || !(numbers_wanted.exchange(false) || host.now() - last_ping >= settings.ping_every)) return;
  last_ping = host.now();
  process.channel.send(encode(wire::ToWorker(wire::Ping{++pings})));
}

void RemoteService::Impl::wait() {
  pollfd watched[2] = {{wake[0], POLLIN, 0},
                       {process.channel.fd(), short(POLLIN | (process.channel.pending() ? POLLOUT : 0)), 0}};
  auto until = ready ? last_ping + settings.ping_every : host.now() + 1s;
  if (!process && start_at > host.now()) until = std::min(until, start_at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - host.now()).count();
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
  const auto now = host.now();
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
  // Lost with requests, it is no failed start: blame.h finds the request at fault, and the others continue.
  failed_starts = started ? 0 : failed_starts + 1;
  // The first one is replaced at once: a waiting client should not notice.
  constexpr Clock::duration kPause[] = {0s, 200ms, 2s};
  start_at = host.now() + kPause[std::min(failed_starts, 2)];
  {
    const std::lock_guard lock(mutex);
    known.ready = false, known.pid = 0, known.restarts++;
    end_states({Code::Failed, format("the worker process was lost meanwhile: {}", why), "try again"}, true);
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
  if (failed_starts >= settings.attempts)
    give_up({Code::Failed, format("no worker process starts, after {} attempts: {}", failed_starts, why),
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
    end_states(why, false);
  }
  changed.notify_all();
  for (auto& [id, r] : requests) r.sink.failed(why);
  for (auto& [id, r] : rest) r.sink.failed(why);
  requests.clear();
}

// ---- called by other threads

RemoteService::RemoteService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<RemoteService>> RemoteService::start(WorkerSettings settings) {
  auto out = start_stepped(std::move(settings), {});
  if (out) (*out)->impl_->thread = std::thread([it = (*out)->impl_.get()] { it->run(); });
  return out;
}

Result<std::unique_ptr<RemoteService>> RemoteService::start_stepped(WorkerSettings settings,
                                                                    WorkerHost host) {
  auto impl = std::make_unique<Impl>(std::move(settings), std::move(host));
  if (pipe2(impl->wake, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error{Code::Failed, "no pipe can be opened for a worker process", ""};
  Impl* const it = impl.get();
  it->asks = it->settings.asks_for_memory;
  std::unique_ptr<RemoteService> out(new RemoteService(std::move(impl)));
  if (auto started = it->start_process(); !started) return started.error();
  return out;
}

RemoteService::~RemoteService() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->poke();
  if (impl_->thread.joinable()) impl_->thread.join();
  else impl_->run();  // which only ends: `stopping` is set
  for (int fd : impl_->wake) close(fd);
}

void RemoteService::turn() {
  impl_->take_wishes();
  impl_->turn(false);
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

Result<wire::State> RemoteService::Impl::call(uint64_t id, wire::ToWorker message, int file) {
  const auto s = std::make_shared<SavedState>();
  s->message = std::move(message), s->file = file;
  std::unique_lock lock(mutex);
  if (ended) return *ended;
  states.emplace(id, s);
  lock.unlock();
  poke();
  lock.lock();
  changed.wait(lock, [&] { return s->result.has_value(); });
  return std::move(*s->result);
}

Result<int> RemoteService::kept(std::span<const Token> text) {
  const uint64_t id = new_request_id();
  const auto state = impl_->call(id, wire::Save{id, {text.begin(), text.end()}, false}, -1);
  return state ? Result<int>(state->tokens) : state.error();
}

Result<int> RemoteService::save(std::span<const Token> text, DraftFile& to) {
  const uint64_t id = new_request_id();
  const auto state = impl_->call(id, wire::Save{id, {text.begin(), text.end()}}, to.descriptor());
  return state ? Result<int>(state->tokens) : state.error();
}

Result<std::vector<Token>> RemoteService::restore(const InputFile& from) {
  const uint64_t id = new_request_id();
  auto state = impl_->call(id, wire::Restore{id}, from.descriptor());
  return state ? Result<std::vector<Token>>(std::move(state->text)) : state.error();
}

Result<int> RemoteService::erase(std::span<const Token> text) {
  const uint64_t id = new_request_id();
  const auto state = impl_->call(id, wire::Erase{id, {text.begin(), text.end()}}, -1);
  return state ? Result<int>(state->tokens) : state.error();
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
