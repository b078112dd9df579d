#include "apps/serving/http_service.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>

#include "apps/reports/next_steps.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "fetch/small_file.h"
#include "server/api/text.h"

namespace gimbal {
namespace {

// Each client is an open file.
void allow_many_clients() {
  if (rlimit files{}; getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

// Handles SIGHUP. A closed terminal sends it, too, so it never ends the server.
void read_again(http::Server& server, bool has_certificate) {
  if (!has_certificate) return note("SIGHUP: there is no certificate to reload; SIGTERM stops this server");
  if (auto renewed = server.renew_certificate(); !renewed)
    note(format("SIGHUP: the old certificate stays in use: {}", worded(renewed.error()).message));
  else note("SIGHUP: the certificate was reloaded");
}

// Loads the first model, then unloads idle ones, on its own thread.
class LoadingThread {
 public:
  // `loaded` is called once, from that thread, which then holds no model.
  LoadingThread(LoadedModels& models, std::function<void(const Status&)> loaded)
      : thread_([this, &models, loaded = std::move(loaded)] {
          const Status ok = [&]() -> Status {
            const auto first = models.get(models.list()[0].id);
            if (!first) return first.error();
            return Done{};
          }();
          loaded(ok);
          if (!ok) return;
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, std::chrono::seconds(1), [&] { return end_; })) models.tidy();
        }) {}
  ~LoadingThread() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace

void declare(Arguments& a, HttpOptions& o, const char* port) {
  a.section(kClientsSection);
  a.text("--host", "ADDRESS",
         "address to listen on (default 127.0.0.1: this machine only); 0.0.0.0: all networks", o.host);
  a.whole("--port", "N", port, o.port, 0, 65535);
  a.texts("--api-key", "KEY",
          "a key that clients must send; repeatable. Without a key, any local process can connect; if other "
          "machines can, a key is generated and shown. Prefer $GIMBAL_API_KEY: other users can see arguments",
          o.keys);
  a.texts("--allow-host", "NAME",
          "accept this name in the Host header, besides localhost and the address; repeatable, or * for any. "
          "Needed behind a local proxy that keeps its clients' Host header",
          o.names);
  a.texts("--cors-origin", "ORIGIN",
          "allow pages of this web site to send requests, such as https://chat.example; repeatable, or * "
          "(default: none)",
          o.sites);
  a.texts("--allow-image-urls", "HOST",
          "fetch pictures that requests have as http or https addresses of this host; repeatable, or with "
          "commas. HOST:PORT: that port, else the scheme's own. Private addresses count only if given by "
          "number (default: none is fetched)",
          o.picture_hosts);
  a.text("--tls-cert", "FILE", "enable TLS with this certificate chain (PEM, the server's certificate first)",
         o.tls_cert);
  a.text("--tls-key", "FILE", "the key of the certificate (PEM)", o.tls_key);
  a.whole("--header-timeout", "SECONDS",
          "time limit for the first line and headers of a request (default 20)", o.header_timeout, 1, 3600);
  a.whole("--body-timeout", "SECONDS", "time limit for the body of a request (default 50)", o.body_timeout, 1,
          3600);
  a.whole("--drain-timeout", "SECONDS", "time to finish running requests after SIGTERM (default 8)", o.drain,
          0, 86400);
  a.section(kLogSection);
  a.flag("--log-json", "log each request and note on stderr as a JSON object", o.log_json);
  a.flag("--log-prompts", "also log request bodies", o.log_prompts);
}

static std::vector<std::string> picture_hosts(const HttpOptions& o) {
  std::vector<std::string> all;
  for (const std::string& given : o.picture_hosts)
    for (std::string& host : split(given, ',')) all.push_back(std::move(host));
  return all;
}

Status apply(const HttpOptions& o) {
  if (o.log_json) note_as_json(api::log_line);
  if (o.tls_cert.has_value() != o.tls_key.has_value())
    return Error{Code::Usage, "--tls-cert and --tls-key go together", "give both, or none of them"};
  std::vector<std::string> names = o.names;
  std::erase(names, "*");
  if (const auto wrong = api::wrong_host(names))
    return Error{Code::Usage, format("--allow-host: {} is not a host name", gimbal::quoted(*wrong)),
                 "give a name without http:// and without a port, such as chat.example"};
  if (const auto wrong = api::wrong_site(o.sites))
    return Error{Code::Usage, format("--cors-origin: {} is not an origin", gimbal::quoted(*wrong)),
                 "give the scheme and the host of the site, as https://chat.example"};
  const std::vector<std::string> hosts = picture_hosts(o);
  if (const auto wrong = api::PictureFetches::wrong_host(hosts))
    return Error{Code::Usage, format("--allow-image-urls: {} is not a host", gimbal::quoted(*wrong)),
                 "give a name or an address without http://, such as images.example or 127.0.0.1:8000"};
  if (!hosts.empty())
    if (auto ok = can_fetch(); !ok) return ok;
  return Done{};
}

namespace {

// The next of these signals; 0 if none came within `seconds` (nullopt: no limit). Also wakes without a
// signal when a stopped process continues.
int next_signal(const sigset_t& any, std::optional<double> seconds = {}) {
  const double end = now() + seconds.value_or(0);
  for (;;) {
    const double left = std::max(end - now(), 0.0);
    const timespec limit{std::time_t(left), long((left - double(std::time_t(left))) * 1e9)};
    const int signal = sigtimedwait(&any, nullptr, seconds ? &limit : nullptr);
    if (signal > 0) return signal;
    if (errno != EINTR) return 0;
  }
}

}  // namespace

Signals::Signals(bool certificate) : certificate_(certificate) {
  sigemptyset(&all_);
  for (int s : {SIGTERM, SIGINT, SIGUSR2, SIGHUP}) sigaddset(&all_, s);
  pthread_sigmask(SIG_BLOCK, &all_, &before_);
}

Signals::~Signals() {
  stop();
  while (next_signal(all_, 0)) {}  // late signals must not reach code that runs afterwards
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::start(http::Server& server, api::Services& services, double drain_seconds,
                    std::function<void()> draining) {
  thread_ = std::thread([this, &server, &services, drain_seconds, draining = std::move(draining)] {
    wait(server, services, drain_seconds, draining);
  });
}

void Signals::wait(http::Server& server, api::Services& services, double drain_seconds,
                   const std::function<void()>& draining) {
  int first = next_signal(all_);
  for (; first == SIGHUP; first = next_signal(all_)) read_again(server, certificate_);
  if (first == SIGUSR2) return;
  sigdelset(&all_, SIGHUP), std::signal(SIGHUP, SIG_IGN);  // SIGHUP does not count as a second signal
  services.draining = true;
  if (draining) draining();
  server.drain();
  if (next_signal(all_, drain_seconds) == SIGUSR2) return;  // the server has ended
  services.answers.end();
  if (next_signal(all_, 1) != SIGUSR2) server.stop();  // a second to notify the clients
}

void Signals::drain() {
  if (thread_.joinable()) pthread_kill(thread_.native_handle(), SIGTERM);
}

void Signals::stop() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

HttpService::HttpService(const HttpOptions& o, bool as_json, bool quiet)
    : o_(o), as_json_(as_json), quiet_(quiet), signals_(o.tls_cert.has_value()) {
  allow_many_clients();
}

api::RequestLog HttpService::request_log() const {
  api::RequestLog log{o_.log_prompts, {}};
  if (o_.log_json || o_.log_prompts || !quiet_)
    log.tell = [as_json = o_.log_json](const api::RequestRecord& r) {
      log_to_stderr(api::log_line(r, as_json));
    };
  return log;
}

api::Access HttpService::access() {
  const std::string host = o_.host.value_or("127.0.0.1");
  const bool here_only = http::is_loopback(host);
  api::Access a{o_.keys, o_.sites};
  for (std::string& site : a.sites) site = http::lower(site);
  // Others must know the key, whatever they call this server.
  if ((here_only || !o_.names.empty()) &&
      std::find(o_.names.begin(), o_.names.end(), "*") == o_.names.end()) {
    a.hosts = api::loopback_names();
    a.hosts.push_back(host.find(':') == host.npos ? http::lower(host) : format("[{}]", http::lower(host)));
    for (const std::string& name : o_.names) a.hosts.push_back(http::lower(name));
  }
  if (a.keys.empty() && !here_only) {
    a.keys.push_back(api::generated_key());
    note(format("other machines can reach this server, so a key is needed. It is shown once, here: {}",
                a.keys[0]));
  }
  needs_key_ = !a.keys.empty();
  return a;
}

std::string HttpService::url(const http::Server& server) const {
  return (o_.tls_cert ? "https://" : "http://") + server.address();
}

void HttpService::print_ready(const http::Server& server, LoadedModels& models, const Json& more) const {
  const std::string url = this->url(server);
  std::vector<std::string> names;
  for (const KnownModel& m : models.list()) names.push_back(m.id);
  if (as_json_) {
    Json told = {{"url", url}, {"models", names}};
    told.update(more);
    print_json(told, true);
  } else if (!quiet_) {
    constexpr size_t kNamed = 8;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + ptrdiff_t(std::min(names.size(), kNamed)));
    const std::string rest =
        names.size() > kNamed ? format(" and {} more models", names.size() - kNamed) : std::string();
    note(format("serving {}{} at {} (Ctrl-C ends it)", fmt::join(first, ", "), rest, url));
    if (stderr_is_terminal()) {
      note("  try: " + first_request(from_here(url), names[0], needs_key_));
      if (api::answers("/")) note(format("  or open {}/ in a browser", from_here(url)));
    }
  }
  flush_output();
}

Status HttpService::run(LoadedModels& models, api::Services& services, const HttpEvents& events,
                        const Json& more) {
  services.log = request_log();
  services.picture_fetches.allow(picture_hosts(o_));
  api::Api api(services, access());
  http::Server::Options listening{o_.host.value_or("127.0.0.1"), uint16_t(o_.port.value_or(8080))};
  listening.limits.head_seconds = o_.header_timeout.value_or(20);
  listening.limits.body_seconds = o_.body_timeout.value_or(50);
  if (o_.takes_pictures) listening.limits.body_bytes = size_t(32) << 20;
  listening.tls_certificate = o_.tls_cert.value_or(""), listening.tls_key = o_.tls_key.value_or("");
  listening.handler_threads = 64;  // they wait, for models and for embeddings
  auto server = http::Server::listen(listening, api);
  if (!server) return server.error();
  signals_.start(**server, services, o_.drain.value_or(8), events.draining);
  {
    const std::lock_guard lock(mutex_);
    serving_ = true;
  }
  {
    LoadingThread loading(models, [&](const Status& first) {
      if (!first) {
        const std::lock_guard lock(mutex_);
        failure_ = first.error();
        return (*server)->stop();
      }
      services.set_ready();
      print_ready(**server, models, more);
      if (events.ready) events.ready(**server);
    });
    (*server)->run();
  }
  const std::lock_guard lock(mutex_);
  serving_ = false;
  signals_.stop();
  if (failure_) return *failure_;
  return Done{};
}

void HttpService::end(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!serving_ || failure_) return;
  failure_ = why;
  signals_.drain();
}

}  // namespace gimbal
