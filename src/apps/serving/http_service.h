// Shared by all programs that serve models over HTTP: listening, access, logging, startup and shutdown. The
// programs supply the models.
#pragma once
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/toolkit/arguments.h"
#include "base/json.h"
#include "server/api/api.h"
#include "server/http/server.h"
#include "server/loaded_models.h"

namespace gimbal {

struct HttpOptions {
  std::vector<std::string> keys, names, sites, picture_hosts;
  std::optional<std::string> host, tls_cert, tls_key;
  std::optional<int> port, header_timeout, body_timeout, drain;
  bool log_json = false, log_prompts = false;
  bool takes_pictures = false;  // bodies may be larger
};

inline constexpr const char* kClientsSection = "Clients";
inline constexpr const char* kLogSection = "Log";
// `port`: help text of --port.
void declare(Arguments&, HttpOptions&, const char* port);
// Call it at the start of a command: configures later notes. Errors: Usage, for contradicting options and
// invalid names or origins.
Status apply(const HttpOptions&);

// The first signal drains the server, the second one ends it; answers still in progress then end with an
// error of their API. SIGHUP reloads the certificate, if there is one, and never ends the server. A
// separate thread waits for signals, so that they interrupt no other thread.
class Signals {
 public:
  // Create it before any other thread, which inherits the blocked signals.
  explicit Signals(bool certificate);
  // Calls `draining` when draining begins.
  void start(http::Server&, api::Services&, double drain_seconds, std::function<void()> draining);
  void drain();  // like the first signal; while the server runs
  void stop();   // afterwards it does not use the server
  ~Signals();

 private:
  void wait(http::Server&, api::Services&, double drain_seconds, const std::function<void()>& draining);
  const bool certificate_;
  sigset_t all_{}, before_{};
  std::thread thread_;
};

struct HttpEvents {
  std::function<void(const http::Server&)> ready = {};
  std::function<void()> draining = {};  // no new requests are accepted
};

class HttpService {
 public:
  // Blocks signals: create it before any other thread. `as_json`: reports the address as a JSON object on
  // stdout; `quiet`: otherwise no address line, and no request log.
  HttpService(const HttpOptions& o, bool as_json, bool quiet);

  // Serves until a signal, or until end(). Loads the first model, while it already answers health requests;
  // then reports the address, with the members of `more`, and calls `ready`. Errors: those of listening and
  // of loading the first model; the error passed to end().
  Status run(LoadedModels&, api::Services&, const HttpEvents& events = {}, const Json& more = Json::object());
  // From any thread: drains as at a signal, then run() returns this error.
  void end(const Error& why);

  // "http://127.0.0.1:8080", for a server of this service.
  std::string url(const http::Server&) const;

 private:
  api::RequestLog request_log() const;
  api::Access access();
  void print_ready(const http::Server&, LoadedModels&, const Json& more) const;

  const HttpOptions o_;
  const bool as_json_, quiet_;
  bool needs_key_ = false;
  Signals signals_;
  std::mutex mutex_;
  bool serving_ = false;
  std::optional<Error> failure_;
};

}  // namespace gimbal
