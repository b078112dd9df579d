// One connection, as two coroutines on the server's thread: one reads whatever comes, so that a client that
// leaves is noticed at once; the other one takes requests from it and writes the answers, in order.
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

// What all connections share. It outlives the server where an exchange is still held.
struct Shared {
  asio::io_context io{1};
  asio::thread_pool pool;
  Handler& handler;
  Limits limits;
  std::shared_ptr<const TlsContext> tls;  // nullptr: connections are not encrypted
  std::list<std::shared_ptr<Connection>> connections;
  size_t owed = 0;  // answers that are not written yet
  bool draining = false;
  std::string scratch = std::string(64 << 10, '\0');  // what is read goes through here
  std::function<void()> changed;                      // fewer connections, or fewer answers owed

  Shared(Handler& h, const Limits& l, int threads) : pool(size_t(threads)), handler(h), limits(l) {}
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared>, Socket);
  void start();
  void close();                 // at once
  void drain();                 // ends it, unless a whole request waits for its answer
  void check_time(double now);  // ends what takes too long

 private:
  class Ticket;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  asio::awaitable<void> read();
  asio::awaitable<void> serve();
  asio::awaitable<void> linger();
  // Each answers false when the connection is to end; it has answered then what there was to say.
  asio::awaitable<bool> take_head(Head& to);
  asio::awaitable<bool> take_body(Head& head);
  asio::awaitable<bool> respond(Head& head);
  asio::awaitable<bool> pump(const Head& head, bool& streaming);
  asio::awaitable<bool> send_whole(const Response&, const Head*, bool keep);
  asio::awaitable<bool> send(std::string_view bytes);
  // Writes to_send_. `timed`: a client that takes nothing is cut off.
  asio::awaitable<bool> flush(bool timed);
  void take(std::string_view bytes);
  void take_tls(std::string_view bytes);
  asio::awaitable<bool> refuse(const Refusal&, const Head*);
  asio::awaitable<void> change();  // waits for signal()
  void signal();
  void settle();  // no answer is owed any more
  void allow(double seconds);
  void let_go();  // of the ticket
  std::string head_of(const Response&, const Head*, bool keep, bool chunked) const;

  std::shared_ptr<Shared> shared_;
  Socket socket_;
  asio::steady_timer event_, room_;
  std::string peer_, input_;
  std::string to_send_;             // what the socket did not take yet
  std::unique_ptr<TlsStream> tls_;  // nullptr: what is read and written is the text itself
  size_t discarded_ = 0;
  double deadline_ = kNever;
  bool signalled_ = false;
  bool eof_ = false;      // nothing more will come from the client
  bool closed_ = false;   // and nothing more will reach it
  bool expired_ = false;  // the deadline
  bool writes_ = false, discards_ = false, first_ = true, idle_ = true;
  bool owes_ = false;                        // an answer, to a request that has begun
  bool heard_ = false;                       // anything
  bool tls_ended_ = false, broken_ = false;  // in order, or not
  bool plain_ = false;                       // HTTP was spoken where TLS is
  std::shared_ptr<Ticket> ticket_;           // of the request that is being answered
};

}  // namespace gimbal::http
