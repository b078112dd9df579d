#include "workers/worker_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/format.h"
#include "base/sockets.h"
#include "workers/channel.h"
#include "workers/errands.h"

namespace gimbal {
namespace {

// Waits until all is written: a front always reads.
bool send_line(int socket, std::string line) {
  line += '\n';
  return send_all(socket, line.data(), line.size());
}

// Sends the messages of the engine's thread and of the reading thread on one socket. Outlives the requests
// whose sinks hold it.
struct Speaker {
  std::mutex mutex;
  int socket;

  void say(const wire::FromWorker& message) {
    const std::string line = encode(message);
    const std::lock_guard lock(mutex);
    if (socket >= 0 && !send_line(socket, line)) socket = -1;  // the reading thread notices, too
  }
};
using SpeakerPtr = std::shared_ptr<Speaker>;

void submit(GenerationService* service, const SpeakerPtr& to, wire::Submit& m) {
  const uint64_t id = m.id;
  if (!service)
    return to->say(wire::Failed{id, {Code::Unsupported, "this model computes embeddings, not text", ""}});
  GenerationSink sink;
  sink.token = [to, id](const TokenEvent& event) { to->say(wire::NextToken{id, event}); };
  sink.end = [to, id](const GenerationEnd& end) { to->say(wire::Ended{id, end}); };
  sink.failed = [to, id](const Error& why) { to->say(wire::Failed{id, why}); };
  sink.scored = [to, id](const TokenEvent& event) { to->say(wire::Scored{id, event}); };
  sink.begun = [to, id] { to->say(wire::Begun{id}); };
  if (auto ok = service->submit(id, std::move(m.request), std::move(sink)); !ok)
    to->say(wire::Failed{id, ok.error()});
}

// Embeds texts in a thread of its own, so that the loop keeps answering. Requests take turns, text by text,
// so that none waits for another's long list; the texts of a round are computed together.
class Embedder {
 public:
  Embedder(const WorkerLoop& loop, SpeakerPtr to) : loop_(loop), to_(std::move(to)) {}
  ~Embedder() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(wire::Embed&& m) {
    if (!loop_.embed)
      return to_->say(wire::Failed{m.id, {Code::Unsupported, "this worker computes no embeddings", ""}});
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({std::move(m)});
    }
    wake_.notify_all();
  }

 private:
  static constexpr size_t kTextsInRound = 16;
  struct Open {
    wire::Embed message;
    size_t next = 0;  // of its texts
    bool failed = false;
  };
  struct Turn {
    Open* of;
    size_t text;
  };

  void run() {
    std::list<Open> open;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !waiting_.empty() || !open.empty(); });
        if (stopping_) return;
        open.splice(open.end(), waiting_);
      }
      std::vector<Turn> round;
      for (bool more = true; more && round.size() < kTextsInRound;) {
        more = false;
        for (Open& o : open)
          if (o.next < o.message.texts.size() && round.size() < kTextsInRound)
            round.push_back({&o, o.next++}), more = true;
      }
      // A text that cannot be computed fails only its own request: the remaining ones continue one by one.
      size_t sent = 0;
      if (!embed(round, sent))
        for (const Turn& t : std::span(round).subspan(sent))
          if (auto ok = t.of->failed ? Status(Done{}) : embed({&t, 1}, sent); !ok)
            t.of->failed = true, to_->say(wire::Failed{t.of->message.id, ok.error()});
      open.remove_if([](const Open& o) { return o.failed || o.next == o.message.texts.size(); });
    }
  }

  // Counts the texts that were computed and sent.
  Status embed(std::span<const Turn> round, size_t& sent) {
    std::vector<std::vector<Token>> texts;
    for (const Turn& t : round) texts.push_back(t.of->message.texts[t.text]);
    return loop_.embed(texts, [&](size_t i, std::span<const float> values) -> Status {
      to_->say(wire::Embedding{round[i].of->message.id, int(round[i].text), {values.begin(), values.end()}});
      sent++;
      const std::lock_guard held(mutex_);
      if (stopping_) return Error{Code::Failed, "the worker is shutting down", ""};
      return Done{};
    });
  }

  const WorkerLoop& loop_;
  const SpeakerPtr to_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Open> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

// Save, Restore or Erase. `file`: its descriptor, or -1.
wire::FromWorker done(SavedPrompts* prompts, const wire::ToWorker& message, int file) {
  uint64_t id = 0;
  const auto state = [&](const Result<int>& tokens) -> wire::FromWorker {
    if (tokens) return wire::State{id, *tokens};
    return wire::Failed{id, tokens.error()};
  };
  const Error writes_none{Code::Unsupported, "this worker writes no text", ""};
  const Error without{Code::Failed, "the server sent no file", ""};
  if (const auto* m = std::get_if<wire::Save>(&message)) {
    id = m->id;
    DraftFile draft = DraftFile::adopt(file);
    if (!prompts) return state(writes_none);
    if (!m->writes) return state(prompts->kept(m->text));
    if (file < 0) return state(without);
    return state(prompts->save(m->text, draft));
  }
  if (const auto* m = std::get_if<wire::Erase>(&message)) {
    id = m->id;
    return state(prompts ? prompts->erase(m->text) : 0);
  }
  id = std::get<wire::Restore>(message).id;
  if (file < 0) return state(without);
  const auto from = InputFile::adopt(file, "the file");
  if (!from) return state(from.error());
  if (!prompts) return state(writes_none);
  auto restored = prompts->restore(*from);
  if (!restored) return state(restored.error());
  const int tokens = int(restored->size());
  return wire::State{id, tokens, std::move(*restored)};
}

Error front_gone() { return {Code::Usage, "the server that started this worker is gone", ""}; }

// Byte by byte: the bytes after the line are for serve_front().
Result<wire::ToWorker> next_message(int socket) {
  constexpr size_t kLongest = 1 << 20;
  std::string line;
  for (char c; line.size() < kLongest;) {
    pollfd p{socket, POLLIN, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return front_gone();
    const ssize_t n = read(socket, &c, 1);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return front_gone();
    if (n < 0) continue;
    if (c == '\n') return wire::decode_to_worker(line);
    line += c;
  }
  return Error{Code::Malformed, "the server sent a message without an end", ""};
}

}  // namespace

struct FrontSession::Impl {
  explicit Impl(const WorkerLoop& l) : loop(l), channel(l.socket, true), to(std::make_shared<Speaker>()) {
    to->socket = loop.socket;
  }
  Status handle(std::string_view line);

  const WorkerLoop loop;
  Channel channel;
  const SpeakerPtr to;
  Embedder embedder{loop, to};
  Errands errands;
};

FrontSession::FrontSession(const WorkerLoop& loop, const wire::Hello& hello)
    : impl_(std::make_unique<Impl>(loop)) {
  impl_->to->say(hello);
}

FrontSession::~FrontSession() {
  const std::lock_guard lock(impl_->to->mutex);
  impl_->to->socket = -1;
}

Status FrontSession::Impl::handle(std::string_view line) {
  auto message = wire::decode_to_worker(line);
  if (!message) return message.error();
  if (auto* m = std::get_if<wire::Submit>(&*message)) {
    submit(loop.service, to, *m);
  } else if (auto* c = std::get_if<wire::Cancel>(&*message)) {
    if (loop.service) loop.service->cancel(c->id);
  } else if (auto* e = std::get_if<wire::Embed>(&*message)) {
    embedder.add(std::move(*e));
  } else if (std::holds_alternative<wire::Save>(*message) || std::holds_alternative<wire::Erase>(*message) ||
             std::holds_alternative<wire::Restore>(*message)) {
    const auto* save = std::get_if<wire::Save>(&*message);
    const bool with_file = save ? save->writes : std::holds_alternative<wire::Restore>(*message);
    const int file = with_file ? channel.take_file() : -1;
    errands.add(
        [prompts = loop.saved, to = to, file, m = std::move(*message)] { to->say(done(prompts, m, file)); });
  } else if (std::holds_alternative<wire::Go>(*message)) {
    return Error{Code::Malformed, "the server sent 'go' to a worker that requested no memory", ""};
  } else if (std::holds_alternative<wire::Load>(*message)) {
    return Error{Code::Malformed, "the server sent its worker a second model", ""};
  } else {
    to->say(wire::Pong{std::get<wire::Ping>(*message).n, loop.numbers ? loop.numbers() : SchedulerNumbers{}});
  }
  return Done{};
}

Result<bool> FrontSession::turn() {
  const bool open = impl_->channel.fill() && !impl_->channel.overlong();
  for (std::string_view line; impl_->channel.next(line);)
    if (auto ok = impl_->handle(line); !ok) return ok.error();
  return open;
}

Status serve_front(const WorkerLoop& loop, const wire::Hello& hello) {
  FrontSession session(loop, hello);
  for (;;) {
    pollfd p{loop.socket, POLLIN, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return Done{};
    auto open = session.turn();
    if (!open) return open.error();
    if (!*open) return Done{};
  }
}

Result<wire::Load> wait_for_load(int socket) {
  auto message = next_message(socket);
  if (!message) return message.error();
  if (auto* load = std::get_if<wire::Load>(&*message)) return std::move(*load);
  return Error{Code::Malformed, "the server's first message is not the model", ""};
}

Status ask_for_memory(int socket, const wire::Planned& planned) {
  if (!send_line(socket, encode(wire::FromWorker(planned)))) return front_gone();
  auto message = next_message(socket);
  if (!message) return message.error();
  if (std::holds_alternative<wire::Go>(*message)) return Done{};
  return Error{Code::Malformed, "the server did not answer its worker's request for memory", ""};
}

void send_loading(int socket, uint64_t done, uint64_t total) {
  send_line(socket, encode(wire::FromWorker(wire::Loading{done, total})));
}

void send_failed(int socket, const Error& why) {
  send_line(socket, encode(wire::FromWorker(wire::Failed{0, why})));
}

}  // namespace gimbal
