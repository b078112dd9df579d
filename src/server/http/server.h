// The listener and its connections: all of them on the one thread that runs it; handlers on a few others. The
// only users of Boost.Asio are the files behind this header.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http/message.h"

namespace gimbal::http {

struct Limits {
  size_t head_bytes = 16 << 10, body_bytes = 8 << 20;
  size_t drained_bytes = 64 << 20;  // of a body that was refused, so that its sender gets to read the answer
  double head_seconds = 20;         // for a whole head, from its first byte or from the connection's begin
  double body_seconds = 50;
  double idle_seconds = 60;    // between two requests
  double write_seconds = 300;  // for a client to take the next bytes
  double linger_seconds = 10;  // for a client to read the last answer
  size_t connections = 10000;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // From one of several threads; may take its time. The answer may come later, from any thread.
  virtual void handle(Request, std::shared_ptr<Exchange>) = 0;
  // The answer to what is no request, or failed. `path` may be empty. From any thread.
  virtual Response refusal(int status, std::string_view path, const std::string& why) = 0;
};

class Server {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // an address, or "localhost"
    uint16_t port = 0;               // 0: any that is free
    Limits limits = {};
    int handler_threads = 2;
    std::string tls_certificate = {}, tls_key = {};  // PEM files; empty: no TLS
  };
  // Listens from here on; `handler` outlives it. Errors: Usage for a host that is no address; Failed with the
  // system's reason; those of TlsContext::load().
  static Result<std::unique_ptr<Server>> listen(const Options&, Handler& handler);
  virtual ~Server() = default;

  virtual std::string address() const = 0;  // "127.0.0.1:8080", "[::1]:8080"
  virtual uint16_t port() const = 0;
  // Serves until stop(), or until everything is answered after drain(). When it returns, no connection is
  // left.
  virtual void run() = 0;

  // From any thread. Reads the files of the certificate and its key again, for connections that are made from
  // here on. Errors: those of TlsContext::load(); then the old certificate stays.
  virtual Status renew_certificate() = 0;
  // From any thread. Goes on answering requests that are there as a whole, and ends when no answer is owed.
  // Others get status 503, however slowly the rest of them comes.
  virtual void drain() = 0;
  virtual void stop() = 0;
};

// Whether only this machine can reach it.
bool is_loopback(const std::string& host);

}  // namespace gimbal::http
