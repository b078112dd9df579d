// The listener and its connections run on one thread; handlers run on a few others. Only the files behind
// this header use Boost.Asio.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http/message.h"

namespace gimbal::http {

struct Limits {
  size_t head_bytes = 16 << 10, body_bytes = 8 << 20;
  size_t drained_bytes = 64 << 20;  // of a refused body, so that its sender can read the answer
  double head_seconds = 20;         // for a complete head, from its first byte or the connection's start
  double body_seconds = 50;
  double idle_seconds = 60;    // between two requests
  double write_seconds = 300;  // for a client to accept the next bytes
  double linger_seconds = 10;  // for a client to read the last answer
  size_t connections = 10000;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Called from several threads; may block. The answer may come later, from any thread.
  virtual void handle(Request, std::shared_ptr<Exchange>) = 0;
  // The response to an invalid request or a failure. `path` may be empty. From any thread.
  virtual Response refusal(int status, std::string_view path, const std::string& why) = 0;
};

class Server {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // an address, or "localhost"
    uint16_t port = 0;               // 0: any free port
    Limits limits = {};
    int handler_threads = 2;
    std::string tls_certificate = {}, tls_key = {};  // PEM files; empty: no TLS
  };
  // Starts to listen; `handler` must outlive it. Errors: Usage if host is not an address; Failed with the
  // system's reason; those of TlsContext::load().
  static Result<std::unique_ptr<Server>> listen(const Options&, Handler& handler);
  virtual ~Server() = default;

  virtual std::string address() const = 0;  // "127.0.0.1:8080", "[::1]:8080"
  virtual uint16_t port() const = 0;
  // Serves until stop(), or after drain() until all requests are answered. Closes all connections before it
  // returns.
  virtual void run() = 0;

  // From any thread. Reloads the certificate and key files, for new connections. Errors: those of
  // TlsContext::load(); then the old certificate stays.
  virtual Status renew_certificate() = 0;
  // From any thread. Answers the requests that have fully arrived, then ends. Others get status 503,
  // however slowly their remainder arrives.
  virtual void drain() = 0;
  virtual void stop() = 0;
};

// Whether the host is reachable from this machine only.
bool is_loopback(const std::string& host);

}  // namespace gimbal::http
