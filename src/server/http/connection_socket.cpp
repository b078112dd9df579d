// A connection that has become a WebSocket: messages from the client, each answered before the next.
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <exception>

#include "base/clock.h"
#include "server/http/ticket.h"
#include "server/http/websocket.h"

namespace gimbal::http {
namespace {

constexpr size_t kMostWaiting = 8;  // messages behind the one that is answered

// The client's messages that wait for their turn.
struct Waiting {
  std::deque<std::string> texts;
  size_t bytes = 0;

  std::string take() {
    std::string first = std::move(texts.front());
    texts.pop_front();
    bytes -= first.size();
    return first;
  }
};

}  // namespace

// Moves the output of the current answer to `to`. False: it has ended.
bool Connection::take_output(std::string& to) {
  ticket_->looked();
  Outgoing out;
  if (auto answer = ticket_->take_answer()) out.whole = std::move(answer);
  else if (const auto source = ticket_->source()) source->pull(out);
  to += out.bytes;
  if (out.whole && !out.whole->body.empty()) to += frame(Opcode::Text, out.whole->body);
  return !out.whole && !out.end;
}

asio::awaitable<void> Connection::converse(std::shared_ptr<Messages> messages) {
  const Limits& limits = shared_->limits;
  MessageReader reader(MessageReader::From::Client, limits.body_bytes);
  Waiting waiting;
  std::optional<CloseReason> close;
  uint64_t number = 0;
  double heard = now(), begun = kNever;  // the last bytes; the beginning of an incomplete message
  bool pinged = false;

  talks_ = true;
  if (!shared_->draining) settle();
  while (!close && !eof_ && !closed_) {
    std::string out;
    if (!input_.empty()) heard = now(), pinged = false;
    std::string_view rest = input_;
    std::optional<std::string> pong;  // to the last ping: a flood of them has one answer
    while (!close) {
      auto m = reader.next(rest);
      if (!m) break;
      if (m->kind == Opcode::Text) begun = kNever;
      if (m->kind == Opcode::Ping) pong = std::move(m->data);
      if (m->kind == Opcode::Close) close = CloseReason{m->code, ""};
      if (m->kind != Opcode::Text || (ticket_ && messages->take_early(number, m->data))) continue;
      waiting.bytes += m->data.size();
      waiting.texts.push_back(std::move(m->data));
      if (waiting.texts.size() > kMostWaiting || waiting.bytes > limits.body_bytes)
        close = CloseReason{kAgainstRules, "too many messages wait for their answers"};
    }
    input_.erase(0, input_.size() - rest.size());
    room_.cancel();
    if (reader.fault()) close = reader.fault();
    if (!reader.is_within()) begun = kNever;
    else if (begun == kNever) begun = now();
    if (pong) out += frame(Opcode::Pong, *pong);

    if (!ticket_ && !close && shared_->draining)
      close = CloseReason{kGoingAway, "the server is about to end"};
    if (!ticket_ && !close && !waiting.texts.empty()) {
      owe();
      ticket_ = std::make_shared<Ticket>(shared_, weak_from_this());
      asio::post(shared_->pool, [messages, n = ++number, text = waiting.take(), t = ticket_]() mutable {
        try {
          messages->handle(n, std::move(text), t);
        } catch (const std::exception&) {  // as for requests
          t->answer(messages->failed());
        }
      });
    }
    if (ticket_ && !close && !take_output(out)) {
      let_go();
      if (!shared_->draining) settle();
      signal();  // the next message
    }

    const double time = now(), silent = time - heard;
    if (silent >= limits.idle_seconds) close = CloseReason{kAgainstRules, "the client does not answer"};
    else if (time - begun >= limits.body_seconds)
      close = CloseReason{kAgainstRules, "the message did not arrive in time"};
    else if (silent >= limits.idle_seconds / 2 && !pinged) out += frame(Opcode::Ping, ""), pinged = true;
    if (!out.empty()) {
      const bool sent = co_await send(out);
      if (!sent) break;
    } else if (!close) {
      deadline_ = std::min(heard + limits.idle_seconds / (pinged ? 1 : 2), begun + limits.body_seconds);
      expired_ = false;
      co_await change();
    }
  }
  deadline_ = kNever;
  if (ticket_)
    if (const auto source = ticket_->source()) source->gone();
  if (close && !closed_) {
    const std::string last = close_frame(*close);
    const bool sent = co_await send(last);
    static_cast<void>(sent);
  }
}

}  // namespace gimbal::http
