// Texts that a model writes: its Batch computes in a thread of its own and leaves the pieces here, without
// Python's lock. A Text hands them out one by one, and lets Ctrl-C through while it waits.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "python/handles.h"

namespace gimbal::python {
namespace {

constexpr auto kBetweenSignals = std::chrono::milliseconds(50);

// Between the thread that computes and those that read.
struct Pieces {
  enum Kind { Content, Reasoning, ToolCall };
  struct Piece {
    Kind kind;
    std::string text;
  };

  void add(Kind kind, std::string text) {
    if (text.empty()) return;
    std::lock_guard lock(mutex);
    all.push_back({kind, std::move(text)});
    wake();
  }
  void end() {
    std::lock_guard lock(mutex);
    ended = true;
    wake();
  }
  void wake() {
    changed.notify_all();
    if (waker >= 0 && write(std::exchange(waker, -1), "", 1) < 0) return;  // full: awake anyway
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Piece> all;
  bool ended = false;
  int waker = -1;  // a pipe of an event loop that waits
};

struct Text {
  std::shared_ptr<Batch> batch;
  std::shared_ptr<Pieces> pieces;
  uint64_t id = 0;
  bool chat = false;
  std::optional<Error> failed;
  std::string result;  // JSON; empty: not fetched yet
  std::mutex fetching;

  Text() = default;
  Text(Text&& o) : batch(std::move(o.batch)), pieces(std::move(o.pieces)), id(o.id), chat(o.chat) {}
  ~Text() {
    if (!batch) return;
    batch->cancel(id);
    fetch();
  }

  // Blocks until the end. Lets go of the batch, which ends with its last text.
  void fetch() {
    std::lock_guard lock(fetching);
    if (!batch) return;
    if (chat) take(batch->wait_reply(id));
    else take(batch->wait(id));
    batch = nullptr;
  }

 private:
  void take(Result<Reply> r) {
    if (r) result = c::json_text(r->generated, &r->message);
    else failed = r.error();
  }
  void take(Result<Generated> g) {
    if (g) result = c::json_text(*g, nullptr);
    else failed = g.error();
  }
};

}  // namespace

template <>
inline constexpr const char* kCapsule<Text> = "gimbal.Text";

namespace {

PyObject* new_batch(const Arguments& a) {  // model, options
  const auto o = options_of<BatchOptions>(a, 1);
  auto made = held<Model>(a, 0).new_batch(o);
  return capsule_of(std::make_shared<Batch>(std::move(expect(made))));
}

PyObject* submit(const Arguments& a) {  // batch, text or tokens, options
  Text text;
  text.batch = held<std::shared_ptr<Batch>>(a, 0), text.pieces = std::make_shared<Pieces>();
  auto o = options_of<TextOptions>(a, 2);
  o.on_end = [to = text.pieces] { to->end(); };
  TextSink sink = [to = text.pieces](std::string_view piece) {
    to->add(Pieces::Content, std::string(piece));
    return true;
  };
  auto id = PyUnicode_Check(a.object(1)) ? text.batch->submit(a.text(1), o, std::move(sink))
                                         : text.batch->submit(tokens_of(a, 1), o, std::move(sink));
  if (!id) text.batch = nullptr;
  text.id = expect(id);
  return capsule_of(std::move(text));
}

PyObject* submit_chat(const Arguments& a) {  // batch, messages, options
  Text text;
  text.batch = held<std::shared_ptr<Batch>>(a, 0), text.pieces = std::make_shared<Pieces>(), text.chat = true;
  auto o = options_of<ChatOptions>(a, 2);
  o.on_end = [to = text.pieces] { to->end(); };
  auto id = text.batch->submit(messages_of(a, 1), o, [to = text.pieces](const ReplyPiece& piece) {
    to->add(Pieces::Reasoning, piece.reasoning);
    to->add(Pieces::Content, piece.text);
    for (const ToolCall& call : piece.tool_calls) to->add(Pieces::ToolCall, c::json_text(call));
    return true;
  });
  if (!id) text.batch = nullptr;
  text.id = expect(id);
  return capsule_of(std::move(text));
}

// (kind, text) of the first piece; None at the end. Call it with the lock of the pieces.
PyObject* taken(Pieces& p) {
  static constexpr const char* kKinds[] = {"content", "reasoning", "tool_call"};
  if (p.all.empty()) Py_RETURN_NONE;
  const Pieces::Piece piece = std::move(p.all.front());
  p.all.pop_front();
  return Py_BuildValue("sN", kKinds[piece.kind], text_object(piece.text));
}

// Waits without Python's lock until there is a piece, or the end (or only for the end).
void wait_for(Pieces& p, bool only_end) {
  const auto ready = [&] { return p.ended || (!only_end && !p.all.empty()); };
  std::unique_lock lock(p.mutex);
  while (!ready()) {
    lock.unlock();
    unlocked(true, [&] {
      std::unique_lock waiting(p.mutex);
      return p.changed.wait_for(waiting, kBetweenSignals, ready);
    });
    if (PyErr_CheckSignals() < 0) throw Raised();
    lock.lock();
  }
}

PyObject* next(const Arguments& a) {
  Pieces& p = *held<Text>(a, 0).pieces;
  wait_for(p, false);
  std::lock_guard lock(p.mutex);
  return taken(p);
}

// As next(), but returns False at once if there is no piece yet, and writes a byte to the pipe when there is.
PyObject* poll(const Arguments& a) {  // text, pipe
  Pieces& p = *held<Text>(a, 0).pieces;
  const int pipe = int(a.integer(1));
  std::lock_guard lock(p.mutex);
  if (!p.all.empty() || p.ended) return taken(p);
  p.waker = pipe;
  Py_RETURN_FALSE;
}
PyObject* forget_pipe(const Arguments& a) {
  Pieces& p = *held<Text>(a, 0).pieces;
  std::lock_guard lock(p.mutex);
  p.waker = -1;
  Py_RETURN_NONE;
}

PyObject* result(const Arguments& a) {
  Text& text = held<Text>(a, 0);
  wait_for(*text.pieces, true);
  unlocked(true, [&] { return text.fetch(), 0; });
  if (text.failed) raise(*text.failed);
  return text_object(text.result);
}
PyObject* cancel(const Arguments& a) {
  Text& text = held<Text>(a, 0);
  std::lock_guard lock(text.fetching);
  if (text.batch) text.batch->cancel(text.id);
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef kTextFunctions[] = {
    FUNCTION_OF("new_batch", new_batch),
    LAMBDA_OF("batch_numbers", const auto n = held<std::shared_ptr<Batch>>(a, 0)->numbers();
              return Py_BuildValue("iiKK", n.running, n.waiting, (unsigned long long)n.tokens_generated,
                                   (unsigned long long)n.prompt_tokens);),
    FUNCTION_OF("submit", submit),
    FUNCTION_OF("submit_chat", submit_chat),
    FUNCTION_OF("text_next", next),
    FUNCTION_OF("text_poll", poll),
    FUNCTION_OF("text_forget_pipe", forget_pipe),
    FUNCTION_OF("text_result", result),
    FUNCTION_OF("text_cancel", cancel),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace gimbal::python
