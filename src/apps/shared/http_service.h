// What all programs have that serve models over HTTP: where they listen, who may ask, what they log, how they
// begin and how they end. What they serve is theirs.
#pragma once
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/shared/arguments.h"
#include "base/json.h"
#include "server/api/api.h"
#include "server/http/server.h"
#include "server/loaded_models.h"

namespace gimbal {

struct HttpOptions {
  std::vector<std::string> keys, names, sites;
  std::optional<std::string> host, tls_cert, tls_key;
  std::optional<int> port, header_timeout, body_timeout, drain;
  bool log_json = false, log_prompts = false;
};

inline constexpr const char* kClientsSection = "Clients";
inline constexpr const char* kLogSection = "Log";
// `port`: its line in --help.
void declare(Arguments&, HttpOptions&, const char* port);
// At the start of a command: from here on notes are as was asked for. Errors: Usage, for options that
// contradict each other, and for names and origins that are none.
Status apply(const HttpOptions&);

// The first signal drains the server, the second one ends it; what is still computed then ends with an error
// of its API. SIGHUP reads the certificate again, where there is one, and never ends the server. A thread of
// its own waits for them, so that nothing else is ever interrupted.
class Signals {
 public:
  // Before any other thread is started: they inherit that the signals are blocked.
  explicit Signals(bool certificate);
  // `draining` is called when it begins.
  void start(http::Server&, api::Services&, double drain_seconds, std::function<void()> draining);
  void drain();  // as the first signal does; while it runs
  void stop();   // the server is not touched any more
  ~Signals();

 private:
  void wait(http::Server&, api::Services&, double drain_seconds, const std::function<void()>& draining);
  const bool certificate_;
  sigset_t all_{}, before_{};
  std::thread thread_;
};

struct HttpEvents {
  std::function<void(const http::Server&)> ready = {};
  std::function<void()> draining = {};  // no new requests are taken
};

class HttpService {
 public:
  // Blocks signals: before any other thread is started. `as_json`: the line that says where it is served is
  // an object on stdout; `quiet`: there is no such line otherwise, and no log of requests.
  HttpService(const HttpOptions& o, bool as_json, bool quiet);

  // Serves until a signal, or until end(). Loads the first model while requests about health are answered
  // already; then tells where it is served, with `more` members besides, and calls `ready`. Errors: those of
  // listening and of that first model; what end() was told.
  Status run(LoadedModels&, api::Services&, const HttpEvents& events = {}, const Json& more = Json::object());
  // From any thread: answers what it can, as at a signal, and ends with this error.
  void end(const Error& why);

  // "http://127.0.0.1:8080", of a server of this service.
  std::string url(const http::Server&) const;

 private:
  api::RequestLog request_log() const;
  api::Access access();
  void tell_ready(const http::Server&, LoadedModels&, const Json& more) const;

  const HttpOptions o_;
  const bool as_json_, quiet_;
  bool needs_key_ = false;
  Signals signals_;
  std::mutex mutex_;
  bool serving_ = false;
  std::optional<Error> failure_;
};

}  // namespace gimbal
