#include "server/http/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cctype>
#include <ctime>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "server/http/ticket.h"

namespace gimbal::http {
namespace {

using boost::system::error_code;

// Status 503: does not wait for the rest of a client's request.
Refusal ending() { return {503, "the server is shutting down, and the request was incomplete"}; }

constexpr double kDrainingLinger = 0.25;  // seconds, in place of Limits::linger_seconds
constexpr size_t kMaxInput = 64 << 10;    // read ahead of the current request

bool would_block(const error_code& e) {
  return e == asio::error::would_block || e == asio::error::try_again || e == asio::error::interrupted;
}

std::string date() {
  const std::time_t t = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&t, &utc);
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
}

}  // namespace

Connection::Connection(std::shared_ptr<Shared> shared, Socket socket)
    : shared_(std::move(shared)), socket_(std::move(socket)), event_(shared_->io), room_(shared_->io) {
  error_code e;
  const auto end = socket_.remote_endpoint(e);
  if (!e) peer_ = end.address().to_string(e);
  socket_.non_blocking(true, e);
  socket_.set_option(asio::ip::tcp::no_delay(true), e);
  if (!shared_->tls) return;
  tls_ = TlsStream::create(shared_->tls);
  closed_ = !tls_;
}

void Connection::start() {
  asio::co_spawn(shared_->io, read(), asio::detached);
  asio::co_spawn(shared_->io, serve(), asio::detached);
}

void Connection::close() {
  closed_ = eof_ = true;
  error_code e;
  socket_.close(e);
  room_.cancel();
  signal();
}

void Connection::owe() {
  if (!std::exchange(owes_, true)) shared_->owed++;
}

void Connection::settle() {
  if (std::exchange(owes_, false)) shared_->owed--;
  shared_->changed();
}

void Connection::drain() {
  error_code e;
  if (talks_) owe();  // its close frame
  if (idle_ && socket_.available(e) == 0) close();
  else signal();  // the waiting coroutine wakes and refuses the incomplete request
}

void Connection::check_time(double now) {
  if (now < deadline_) return;
  deadline_ = kNever;
  expired_ = true;
  if (writes_) close();
  else signal();
}

void Connection::allow(double seconds) { deadline_ = now() + seconds; }

void Connection::let_go() {
  if (ticket_) ticket_->let_go();
  ticket_.reset();
}

void Connection::signal() {
  signalled_ = true;
  event_.cancel();
}

asio::awaitable<void> Connection::change() {
  if (!signalled_) {
    error_code e;
    event_.expires_at(asio::steady_timer::time_point::max());
    co_await event_.async_wait(asio::redirect_error(asio::use_awaitable, e));
  }
  signalled_ = false;
}

asio::awaitable<void> Connection::read() {
  const auto self = shared_from_this();
  error_code e;
  while (!closed_) {
    if (input_.size() >= kMaxInput) {
      room_.expires_at(asio::steady_timer::time_point::max());
      co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, e));
      continue;
    }
    co_await socket_.async_wait(Socket::wait_read, asio::redirect_error(asio::use_awaitable, e));
    if (e) break;
    std::string& scratch = shared_->scratch;
    const size_t n = socket_.read_some(asio::buffer(scratch), e);
    if (e && would_block(e)) continue;
    if (e) break;
    take({scratch.data(), n});
    signal();
    // A handshake sends data, too. Reading pauses while that is blocked.
    if (tls_ && !to_send_.empty()) co_await flush(false);
    if (tls_ended_) break;
  }
  if (broken_ || (e && e != asio::error::eof)) closed_ = true;
  eof_ = true;
  signal();
}

void Connection::take(std::string_view bytes) {
  if (discards_) discarded_ += bytes.size();
  else if (tls_) take_tls(bytes);
  else input_.append(bytes);
}

void Connection::take_tls(std::string_view bytes) {
  if (!std::exchange(heard_, true) && std::isalpha(uint8_t(bytes[0]))) {  // no TLS begins like this
    plain_ = true;
    tls_.reset();
    return;
  }
  const TlsStream::State state = tls_->received(bytes, input_);
  tls_->to_client(to_send_);
  tls_ended_ = state != TlsStream::State::Open;
  broken_ = state == TlsStream::State::Failed;
}

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  for (bool go_on = true; go_on;) {
    Head head;
    try {
      go_on = co_await take_head(head);
      if (go_on) go_on = co_await take_body(head);
      if (go_on) go_on = co_await respond(head);
    } catch (const std::exception&) {  // out of memory
      closed_ = true;
      go_on = false;
    }
    let_go();
    if (shared_->draining) go_on = false;
    if (go_on) settle();
  }
  // A server that drains waits for this, so that its last answers arrive.
  if (!shared_->draining) settle();
  if (!closed_) co_await linger();
  settle();
  close();
  shared_->connections.remove(self);
  shared_->changed();
}

// A client that is still sending receives the last answer only if its data is read meanwhile.
asio::awaitable<void> Connection::linger() {
  error_code e;
  if (tls_) {
    tls_->say_end();
    tls_->to_client(to_send_);
    socket_.write_some(asio::buffer(to_send_), e);
    to_send_.clear();
  }
  socket_.shutdown(Socket::shutdown_send, e);
  discards_ = true;
  input_.clear();
  room_.cancel();
  expired_ = false;
  allow(shared_->draining ? kDrainingLinger : shared_->limits.linger_seconds);
  while (!eof_ && !expired_ && discarded_ < shared_->limits.drained_bytes) co_await change();
}

asio::awaitable<bool> Connection::take_head(Head& to) {
  const Limits& limits = shared_->limits;
  idle_ = true;
  expired_ = false;
  bool begun = false;
  allow(first_ ? limits.head_seconds : limits.idle_seconds);
  first_ = false;
  for (;;) {
    if (plain_) {
      const Refusal other{400, "this port speaks TLS: use https:// instead of http://"};
      co_await refuse(other, nullptr);
      co_return false;
    }
    while (!begun && input_.starts_with("\r\n")) input_.erase(0, 2);
    if (!begun && !input_.empty() && input_ != "\r") {
      begun = true;
      idle_ = false;
      owe();
      allow(limits.head_seconds);
    }
    const HeadEnd found = find_head(input_, limits.head_bytes);
    if (found.refusal) {
      co_await refuse(*found.refusal, nullptr);
      co_return false;
    }
    if (found.end) {
      const auto no = parse_head(std::string_view(input_).substr(0, *found.end), to);
      input_.erase(0, *found.end);
      room_.cancel();
      if (no) {
        co_await refuse(*no, &to);
        co_return false;
      }
      to.request.peer = peer_;
      co_return true;
    }
    if (eof_ || closed_) co_return false;
    if (begun && shared_->draining) {
      co_await refuse(ending(), nullptr);
      co_return false;
    }
    if (expired_) {
      const Refusal late{408, "the head of the request did not arrive in time"};
      if (begun) co_await refuse(late, nullptr);
      co_return false;
    }
    co_await change();
  }
}

asio::awaitable<bool> Connection::take_body(Head& head) {
  if (!head.chunked && !head.length.value_or(0)) co_return true;
  const Limits& limits = shared_->limits;
  allow(limits.body_seconds);
  std::optional<Refusal> no;
  if (head.length.value_or(0) > limits.body_bytes) no = Refusal{413, "the body of the request is too long"};
  if (!no && head.expects_continue && input_.empty()) {
    const bool sent = co_await send("HTTP/1.1 100 Continue\r\n\r\n");
    if (!sent) co_return false;
    allow(limits.body_seconds);
  }
  ChunkedBody chunks(limits.body_bytes);
  std::string& body = head.request.body;
  while (!no) {
    if (head.chunked) {
      no = chunks.push(input_, body);
    } else {
      const size_t n = std::min(input_.size(), size_t(*head.length) - body.size());
      body.append(input_, 0, n);
      input_.erase(0, n);
    }
    room_.cancel();
    if (no) break;
    if (head.chunked ? chunks.done() : body.size() == *head.length) co_return true;
    if (eof_ || closed_) no = Refusal{400, "the body of the request is shorter than it says"};
    else if (expired_) no = Refusal{408, "the body of the request did not arrive in time"};
    else if (shared_->draining) no = ending();
    else co_await change();
  }
  co_await refuse(*no, &head);
  co_return false;
}

asio::awaitable<bool> Connection::respond(Head& head) {
  deadline_ = kNever;
  expired_ = false;
  const std::string method = head.request.method;
  ticket_ = std::make_shared<Ticket>(shared_, weak_from_this());
  asio::post(shared_->pool, [&handler = shared_->handler, r = std::move(head.request),
                             t = ticket_]() mutable {
    const std::string path = r.path;
    try {
      handler.handle(std::move(r), t);
    } catch (const std::exception&) {  // out of memory, or a mistake of ours: its words are not for clients
      t->answer(handler.refusal(500, path, "the request failed inside the server"));
    }
  });
  head.request = {};
  head.request.method = method;
  bool streaming = false;
  for (;;) {
    co_await change();
    ticket_->looked();
    if (const auto messages = ticket_->messages()) {
      const auto accepted = ticket_->take_answer();
      const std::string answer = head_of(*accepted, &head, true, false);
      const bool sent = co_await send(answer);
      let_go();
      if (sent) co_await converse(messages);
      co_return false;
    }
    if (auto whole = ticket_->take_answer()) {
      const bool sent = co_await send_whole(*whole, &head, head.keep_alive && !shared_->draining);
      co_return sent&& head.keep_alive;
    }
    if (ticket_->source()) {
      const bool more = co_await pump(head, streaming);
      if (!more) co_return head.keep_alive && !eof_ && !(streaming && head.minor == 0);
    } else if (closed_) {  // the handler will find out
      co_return false;
    }
  }
}

// Writes the source's output. False: that was all, or the client is gone.
asio::awaitable<bool> Connection::pump(const Head& head, bool& streaming) {
  const auto source = ticket_->source();
  const bool chunked = head.minor > 0;
  for (;;) {
    if (eof_) {
      source->gone();
      co_return false;
    }
    Outgoing out;
    source->pull(out);
    if (out.whole) {
      const bool keep = head.keep_alive && !shared_->draining;
      const bool sent = co_await send_whole(*out.whole, &head, keep);
      if (!sent) eof_ = true;
      co_return false;
    }
    std::string bytes;
    if (out.head) {
      streaming = true;
      bytes = head_of(*out.head, &head, head.keep_alive && chunked && !shared_->draining, chunked);
    }
    if (!out.bytes.empty()) {
      if (chunked) bytes += format("{:x}\r\n", out.bytes.size());
      bytes += out.bytes;
      if (chunked) bytes += "\r\n";
    }
    if (out.end && chunked) bytes += "0\r\n\r\n";
    if (bytes.empty() && !out.end) co_return true;
    const bool sent = co_await send(bytes);
    if (!sent) {
      source->gone();
      eof_ = true;
      co_return false;
    }
    if (out.end) co_return false;
  }
}

std::string Connection::head_of(const Response& r, const Head* head, bool keep, bool chunked) const {
  std::string out = format("HTTP/1.1 {} {}\r\nDate: {}\r\n", r.status, reason_of(r.status), date());
  if (!r.type.empty()) out += format("Content-Type: {}\r\n", r.type);
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
  for (const Header& h : r.headers) out += format("{}: {}\r\n", h.name, h.value);
  if (!keep) out += "Connection: close\r\n";
  else if (head && head->minor == 0) out += "Connection: keep-alive\r\n";
  return out + "\r\n";
}

asio::awaitable<bool> Connection::send_whole(const Response& r, const Head* head, bool keep) {
  Response sized = r;
  if (r.status != 204 && r.status != 304)
    sized.headers.push_back({"Content-Length", format("{}", r.body.size())});
  std::string bytes = head_of(sized, head, keep, false);
  if (!head || head->request.method != "HEAD") bytes += r.body;
  const bool sent = co_await send(bytes);
  co_return sent;
}

asio::awaitable<bool> Connection::send(std::string_view bytes) {
  if (!tls_) {
    to_send_ = bytes;
  } else {
    if (tls_->say(bytes) != TlsStream::State::Open) broken_ = true;
    tls_->to_client(to_send_);
  }
  const bool sent = co_await flush(true);
  co_return sent && !broken_;
}

// Both coroutines may be here at once: each sends from the front of to_send_.
asio::awaitable<bool> Connection::flush(bool timed) {
  error_code e;
  while (!to_send_.empty() && !closed_) {
    const size_t n = socket_.write_some(asio::buffer(to_send_), e);
    if (e && !would_block(e)) break;
    if (!e) {
      to_send_.erase(0, n);
      continue;
    }
    e.clear();
    // Only check_time() watches the time meanwhile: it disconnects a client that reads nothing.
    if (timed) allow(shared_->limits.write_seconds), writes_ = true;
    co_await socket_.async_wait(Socket::wait_write, asio::redirect_error(asio::use_awaitable, e));
    if (timed) writes_ = false, deadline_ = kNever;
    if (e) break;
  }
  if (e) closed_ = true;
  const bool all = to_send_.empty();
  if (all) to_send_ = std::string();  // its memory, too: most connections are silent
  co_return all;
}

asio::awaitable<bool> Connection::refuse(const Refusal& no, const Head* head) {
  const std::string path = head ? head->request.path : "";
  const Response answer = shared_->handler.refusal(no.status, path, no.why);
  const bool sent = co_await send_whole(answer, head, false);
  co_return sent;
}

}  // namespace gimbal::http
