#include "workers/remote_service.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "workers/worker_process.h"

namespace gimbal {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPingEvery = 2s;
constexpr size_t kMaxUnread = size_t(256) << 20;  // bytes that a worker does not take

struct Request {
  GenerationRequest asked;  // `written` grows by each token that was told
  GenerationSink sink;
  int losses = 0;  // workers lost since the last token
  bool sent = false;
};

// Of a thread that waits for it.
struct Embedding {
  std::vector<std::vector<Token>> texts;
  size_t received = 0, before = 0;         // `before`: received when it was sent last
  std::vector<std::vector<float>> values;  // of the texts that were received
  std::optional<Error> failed;
  int losses = 0;
  bool sent = false;
};

}  // namespace

// One thread owns the process and all requests; others leave it their wishes.
struct RemoteService::Impl {
  explicit Impl(WorkerSettings s) : settings(std::move(s)) {}

  // ---- shared, under `mutex`
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<uint64_t, Request>> submitted;
  std::vector<uint64_t> cancelled;
  std::map<uint64_t, std::shared_ptr<Embedding>> embeddings;
  uint64_t last_id = 0;
  bool stopping = false;
  std::optional<Error> ended;  // why there will be no worker any more
  WorkerFacts known;

  // ---- the thread's own
  WorkerSettings settings;
  int wake[2] = {-1, -1};
  std::thread thread;
  WorkerProcess process;
  std::map<uint64_t, Request> requests;  // by rising id: the order in which they came
  bool ready = false;
  int failed_starts = 0;
  uint64_t pings = 0, steps = 0;
  Clock::time_point start_at{}, last_ping, heard, moved;

  Status start_process();
  void run();
  void take_wishes();
  void send(uint64_t id, Request& r);
  void wait();
  std::string trouble();
  std::string read();
  std::string handle(wire::FromWorker& message);
  std::string handle(wire::Told& m);
  std::string handle(wire::Ended& m);
  std::string handle(wire::Embedding& m);
  bool busy();
  void end(uint64_t id, const GenerationEnd& how);
  void lose(const std::string& why);
  void give_up(Error why);
  void poke() const { [[maybe_unused]] const ssize_t n = write(wake[1], "", 1); }
};

Status RemoteService::Impl::start_process() {
  auto started = WorkerProcess::start(settings.command);
  if (!started) return started.error();
  process = std::move(*started);
  heard = moved = last_ping = Clock::now();
  const std::lock_guard lock(mutex);
  known.pid = int(process.pid());
  return Done{};
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
  give_up({Code::Failed, "the server ends", ""});
}

// What other threads left.
void RemoteService::Impl::take_wishes() {
  std::vector<std::pair<uint64_t, Request>> fresh;
  std::vector<uint64_t> unwanted;
  {
    const std::lock_guard lock(mutex);
    fresh.swap(submitted), unwanted.swap(cancelled);
    for (auto& [id, e] : embeddings) {
      if (!ready || e->sent) continue;
      e->before = e->received, e->sent = true;
      const std::vector<std::vector<Token>> rest(e->texts.begin() + ptrdiff_t(e->received), e->texts.end());
      process.channel.send(encode(wire::ToWorker(wire::Embed{id, rest})));
    }
  }
  for (auto& [id, r] : fresh) requests.emplace(id, std::move(r));
  if (ready)
    for (auto& [id, r] : requests)
      if (!r.sent) send(id, r);
  for (uint64_t id : unwanted) {
    const auto at = requests.find(id);
    if (at == requests.end()) continue;
    if (at->second.sent) process.channel.send(encode(wire::ToWorker(wire::Cancel{id})));
    else
      end(id, {Finish::Cancelled, "", "", int(at->second.asked.prompt.size()), 0,
               int(at->second.asked.written.size())});
  }
}

void RemoteService::Impl::send(uint64_t id, Request& r) {
  process.channel.send(encode(wire::ToWorker(wire::Submit{id, r.asked})));
  r.sent = true;
}

void RemoteService::Impl::wait() {
  if (ready && Clock::now() - last_ping >= kPingEvery) {
    last_ping = Clock::now();
    process.channel.send(encode(wire::ToWorker(wire::Ping{++pings})));
  }
  pollfd watched[2] = {{wake[0], POLLIN, 0},
                       {process.channel.fd(), short(POLLIN | (process.channel.pending() ? POLLOUT : 0)), 0}};
  auto until = ready ? last_ping + kPingEvery : Clock::now() + 1s;
  if (!process && start_at > Clock::now()) until = std::min(until, start_at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  poll(watched, process ? 2 : 1, int(std::clamp<int64_t>(left, 0, 1000)));
  char drained[64];
  while (::read(wake[0], drained, sizeof drained) > 0) {}
}

// Why the worker must be replaced; empty: it need not.
std::string RemoteService::Impl::trouble() {
  // What was said before the end counts.
  const bool open = process.channel.fill();
  if (std::string why = read(); !why.empty()) return why;
  if (!process) return "";
  if (!open || !process.channel.flush()) {
    const auto pid = process.pid();
    return format("worker {} {}", pid, process.kill());
  }
  if (process.channel.overlong()) return "it sent a message without an end";
  if (process.channel.pending_bytes() > kMaxUnread) return "it does not read what it is sent";
  const auto now = Clock::now();
  if (!ready) return now - heard > settings.longest_load ? "it does not become ready" : "";
  if (now - heard > settings.silence) return "it does not answer";
  if (!busy()) moved = now;
  return now - moved > settings.standstill ? "it computes nothing though requests wait" : "";
}

bool RemoteService::Impl::busy() {
  if (std::any_of(requests.begin(), requests.end(), [](auto& r) { return r.second.sent; })) return true;
  const std::lock_guard lock(mutex);
  return !embeddings.empty();
}

std::string RemoteService::Impl::read() {
  std::string_view line;
  while (process && process.channel.next(line)) {
    auto message = wire::decode_from_worker(line);
    if (!message) return message.error().message;
    heard = Clock::now();
    if (std::string why = handle(*message); !why.empty()) return why;
  }
  return "";
}

std::string RemoteService::Impl::handle(wire::FromWorker& message) {
  if (auto* m = std::get_if<wire::Loading>(&message)) {
    if (!ready && settings.loading) settings.loading(m->done, m->total);
    return "";
  }
  if (auto* m = std::get_if<wire::Hello>(&message)) {
    if (ready) return "it said hello twice";
    ready = true, moved = last_ping = Clock::now();
    {
      const std::lock_guard lock(mutex);
      known.ready = true, known.hello = *m;
    }
    changed.notify_all();
    if (settings.ready) settings.ready(*m);
    return "";
  }
  if (auto* m = std::get_if<wire::Failed>(&message); m && m->id == 0) {
    // Without a first success there is nothing to go on with: the model cannot be loaded.
    if (known.restarts == 0 && !ready) return give_up(std::move(m->why)), "";
    return m->why.message;
  }
  if (!ready) return "it spoke before it was ready";
  // Ready alone is not enough: one that breaks with its first word would be started for ever.
  failed_starts = 0;
  if (auto* m = std::get_if<wire::Pong>(&message)) {
    if (m->numbers.steps != steps) moved = Clock::now();
    steps = m->numbers.steps;
    {
      const std::lock_guard lock(mutex);
      known.numbers = m->numbers;
    }
    changed.notify_all();
    return "";
  }
  moved = Clock::now();
  if (auto* m = std::get_if<wire::Told>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::Ended>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::Embedding>(&message)) return handle(*m);
  auto& m = std::get<wire::Failed>(message);
  {
    const std::lock_guard lock(mutex);
    if (const auto at = embeddings.find(m.id); at != embeddings.end()) {
      at->second->failed = std::move(m.why);
      embeddings.erase(at);
      changed.notify_all();
      return "";
    }
  }
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it speaks of a request that it has not got";
  const GenerationSink sink = std::move(at->second.sink);
  requests.erase(at);
  sink.failed(m.why);
  return "";
}

std::string RemoteService::Impl::handle(wire::Told& m) {
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it speaks of a request that it has not got";
  Request& r = at->second;
  if (m.told.index != int(r.asked.written.size())) return "it left a token out, or told one twice";
  if (m.told.token < 0 || (settings.vocabulary > 0 && m.told.token >= settings.vocabulary))
    return "it told a token that the vocabulary does not have";
  if (r.asked.max_tokens >= 0 && m.told.index >= r.asked.max_tokens)
    return "it told more tokens than were asked for";
  if (!is_utf8(m.told.text)) return "it told a text that is not UTF-8";
  if (int(m.told.top.size()) > std::max(0, r.asked.logprobs))
    return "it told more probabilities than were asked for";
  r.losses = 0;
  r.asked.written.push_back(m.told.token);
  r.sink.token(m.told);
  return "";
}

std::string RemoteService::Impl::handle(wire::Ended& m) {
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it speaks of a request that it has not got";
  const GenerationRequest& asked = at->second.asked;
  if (m.end.tokens != int(asked.written.size()))
    return "it ended an answer with another number of tokens than it told";
  if (m.end.prompt_tokens != int(asked.prompt.size()) || m.end.shared_tokens < 0 ||
      m.end.shared_tokens > m.end.prompt_tokens || !is_utf8(m.end.text))
    return "it ended an answer with numbers or a text that cannot be";
  end(m.id, m.end);
  return "";
}

std::string RemoteService::Impl::handle(wire::Embedding& m) {
  const std::lock_guard lock(mutex);
  const auto at = embeddings.find(m.id);
  if (at == embeddings.end() || !at->second->sent) return "it speaks of a request that it has not got";
  Embedding& e = *at->second;
  if (m.text < 0 || e.before + size_t(m.text) != e.received)
    return "it left a text out, or embedded one twice";
  e.values.push_back(std::move(m.values));
  e.losses = 0;
  if (++e.received == e.texts.size()) embeddings.erase(at);
  changed.notify_all();
  return "";
}

void RemoteService::Impl::end(uint64_t id, const GenerationEnd& how) {
  const auto at = requests.find(id);
  const GenerationSink sink = std::move(at->second.sink);
  requests.erase(at);
  sink.end(how);
}

// The worker is of no use any more. Another one takes its requests.
void RemoteService::Impl::lose(const std::string& why) {
  process.kill();
  ready = false;
  // The first one is replaced at once: whoever waits for a token should not notice.
  constexpr Clock::duration kPause[] = {0s, 200ms, 2s};
  start_at = Clock::now() + kPause[std::min(failed_starts, 2)];
  failed_starts++;
  {
    const std::lock_guard lock(mutex);
    known.ready = false, known.pid = 0, known.restarts++;
  }
  if (settings.replaced) settings.replaced(why);
  const Error lost{
      Code::Failed,
      format("the worker process was lost {} times while it computed this answer: {}", settings.attempts,
             why),
      "Send the request again; if this happens again, report it together with the server's log."};
  for (auto at = requests.begin(); at != requests.end();) {
    Request& r = at->second;
    if (r.sent && ++r.losses >= settings.attempts) {
      const GenerationSink sink = std::move(r.sink);
      at = requests.erase(at);
      sink.failed(lost);
      continue;
    }
    r.sent = false;
    ++at;
  }
  {
    const std::lock_guard lock(mutex);
    for (auto at = embeddings.begin(); at != embeddings.end();) {
      Embedding& e = *at->second;
      if (e.sent && ++e.losses >= settings.attempts) {
        e.failed = lost;
        at = embeddings.erase(at);
      } else {
        e.sent = false, ++at;
      }
    }
  }
  changed.notify_all();
  if (failed_starts > settings.attempts)
    give_up({Code::Failed, format("no worker process becomes ready: {}", why),
             "The server's log says more; start it again."});
}

void RemoteService::Impl::give_up(Error why) {
  process.kill();
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

// ---- what others call

RemoteService::RemoteService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<RemoteService>> RemoteService::start(WorkerSettings settings) {
  auto impl = std::make_unique<Impl>(std::move(settings));
  if (pipe2(impl->wake, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error{Code::Failed, "no pipe can be opened for a worker process", ""};
  Impl* const it = impl.get();
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
  impl_->changed.wait(lock, [&] { return impl_->known.ready || impl_->ended; });
  if (impl_->ended) return *impl_->ended;
  return Done{};
}

WorkerFacts RemoteService::facts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known;
}

Status RemoteService::embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) {
  if (texts.empty()) return Done{};
  const auto e = std::make_shared<Embedding>();
  e->texts.assign(texts.begin(), texts.end());
  std::unique_lock lock(impl_->mutex);
  if (impl_->ended) return *impl_->ended;
  impl_->embeddings.emplace(++impl_->last_id, e);
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

Result<uint64_t> RemoteService::submit(GenerationRequest request, GenerationSink sink) {
  uint64_t id;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->ended) return *impl_->ended;
    id = ++impl_->last_id;
    impl_->submitted.emplace_back(id, Request{std::move(request), std::move(sink)});
  }
  impl_->poke();
  return id;
}

void RemoteService::cancel(uint64_t id) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->cancelled.push_back(id);
  }
  impl_->poke();
}

}  // namespace gimbal
