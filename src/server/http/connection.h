// One connection: two coroutines on the server's thread. One reads all input, so that it notices a
// disconnecting client at once; the other takes requests from the input and writes the answers in order.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <limits>
#include <list>
#include <string>

#include "server/http/head.h"
#include "server/http/server.h"
#include "server/http/tls.h"

namespace gimbal::http {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

class Connection;
class Ticket;

// State shared by all connections. Outlives the server while an exchange is still held.
struct Shared {
  asio::io_context io{1};
  asio::thread_pool pool;
  Handler& handler;
  Limits limits;
  std::shared_ptr<const TlsContext> tls;  // nullptr: connections are not encrypted
  std::list<std::shared_ptr<Connection>> connections;
  size_t owed = 0;  // answers not written yet
  bool draining = false;
  std::string scratch = std::string(64 << 10, '\0');  // read buffer
  std::function<void()> changed;                      // fewer connections, or fewer owed answers

  Shared(Handler& h, const Limits& l, int threads) : pool(size_t(threads)), handler(h), limits(l) {}
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared>, Socket);
  void start();
  void close();                 // at once
  void drain();                 // closes it, unless a complete request waits for its answer
  void check_time(double now);  // closes it after its deadline

 private:
  friend class Ticket;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  asio::awaitable<void> read();
  asio::awaitable<void> serve();
  asio::awaitable<void> linger();
  // These return false if the connection must close; any error answer has been sent by then.
  asio::awaitable<bool> take_head(Head& to);
  asio::awaitable<bool> take_body(Head& head);
  asio::awaitable<bool> respond(Head& head);
  asio::awaitable<bool> pump(const Head& head, bool& streaming);
  // A WebSocket, until it is closed (connection_socket.cpp).
  asio::awaitable<void> converse(std::shared_ptr<Messages>);
  bool take_output(std::string& to);
  asio::awaitable<bool> send_whole(const Response&, const Head*, bool keep);
  asio::awaitable<bool> send(std::string_view bytes);
  // Writes to_send_. `timed`: disconnects a client that reads nothing.
  asio::awaitable<bool> flush(bool timed);
  void take(std::string_view bytes);
  void take_tls(std::string_view bytes);
  asio::awaitable<bool> refuse(const Refusal&, const Head*);
  asio::awaitable<void> change();  // waits for signal()
  void signal();
  void owe();     // an answer to a request or message
  void settle();  // no answer is owed anymore
  void allow(double seconds);
  void let_go();  // drops the ticket
  std::string head_of(const Response&, const Head*, bool keep, bool chunked) const;

  std::shared_ptr<Shared> shared_;
  Socket socket_;
  asio::steady_timer event_, room_;
  std::string peer_, input_;
  std::string to_send_;             // not yet accepted by the socket
  std::unique_ptr<TlsStream> tls_;  // nullptr: the connection is not encrypted
  size_t discarded_ = 0;
  double deadline_ = kNever;
  bool signalled_ = false;
  bool eof_ = false;      // the client sends nothing more
  bool closed_ = false;   // also for writing
  bool expired_ = false;  // past the deadline
  bool writes_ = false, discards_ = false, first_ = true, idle_ = true;
  bool talks_ = false;                       // it is a WebSocket
  bool owes_ = false;                        // an answer to a request that has begun
  bool heard_ = false;                       // received any bytes
  bool tls_ended_ = false, broken_ = false;  // closed properly; failed
  bool plain_ = false;                       // the client spoke plain HTTP to a TLS port
  std::shared_ptr<Ticket> ticket_;           // of the request being answered
};

}  // namespace gimbal::http
