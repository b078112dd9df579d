// gimbal serve: models behind the APIs that other programs speak.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "apps/backends_json.h"
#include "apps/command.h"
#include "apps/json.h"
#include "apps/next_steps.h"
#include "apps/open_model.h"
#include "apps/serving_options.h"
#include "apps/tell.h"
#include "apps/terminal.h"
#include "base/clock.h"
#include "server/api/api.h"
#include "server/api/text.h"
#include "server/loaded_models.h"
#include "server/remote_model.h"

namespace gimbal {
namespace {

// The first signal drains the server, the second one ends it; what is still computed then ends with an error
// of its API. SIGHUP is about the certificate, where there is one. A thread of its own waits for them, so
// that nothing else is ever interrupted.
class Signals {
 public:
  // Before any other thread is started: they inherit that the signals are blocked.
  explicit Signals(bool certificate) : certificate_(certificate) {
    sigemptyset(&all_);
    for (int s : {SIGTERM, SIGINT, SIGUSR2}) sigaddset(&all_, s);
    if (certificate) sigaddset(&all_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &all_, &before_);
  }
  void start(http::Server& server, api::Services& services, double drain_seconds) {
    thread_ = std::thread([this, &server, &services, drain_seconds] {
      timespec limit{std::time_t(drain_seconds),
                     long((drain_seconds - double(std::time_t(drain_seconds))) * 1e9)};
      int first = sigwaitinfo(&all_, nullptr);
      for (; first == SIGHUP; first = sigwaitinfo(&all_, nullptr)) renew_certificate(server);
      if (first == SIGUSR2) return;
      if (sigdelset(&all_, SIGHUP); certificate_) std::signal(SIGHUP, SIG_IGN);  // it is no second signal
      services.draining = true;
      server.drain();
      if (sigtimedwait(&all_, nullptr, &limit) == SIGUSR2) return;  // the server has ended
      services.answers.end();
      timespec moment{1, 0};  // for clients to be told
      if (sigtimedwait(&all_, nullptr, &moment) != SIGUSR2) server.stop();
    });
  }
  // The server is not touched any more.
  void stop() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }
  ~Signals() {
    stop();
    timespec none{};  // what came in the end is not for whoever follows
    while (sigtimedwait(&all_, nullptr, &none) > 0) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  static void renew_certificate(http::Server& server) {
    if (auto renewed = server.renew_certificate(); !renewed)
      note(format("SIGHUP: the certificate stays as it was: {}", renewed.error().message));
    else note("SIGHUP: connections get the certificate that is in the file now");
  }

  const bool certificate_;
  sigset_t all_{}, before_{};
  std::thread thread_;
};

// Each client is an open file.
void allow_many_clients() {
  if (rlimit files{}; getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

std::string backends_text() {
  const double begin = now();
  const auto reports = discover_backends();
  const auto best = choose_device(reports, {});
  std::vector<Variant> variants;
  if (auto cpu = open_device({"cpu", 0, true})) variants = variants_of(*cpu->device);
  return api::dump(backends_json(reports, best, variants, now() - begin));
}

// What POST /v1/backends/reload does. A backend that computes a model now and would be of no use is found
// before anything is exchanged.
Result<std::string> reload_backends(LoadedModels& models) {
  const auto reports = discover_backends();
  for (const ServedModelPtr& model : models.loaded())
    for (const auto& op : model->ops()) {
      const std::string device = op.value("device", "");
      for (const BackendReport& r : reports)
        if (device.starts_with(r.backend + ":") && !r.available)
          return Error{
              Code::NoBackend,
              format("{} computes {}, and would not be there now: {}", device, model->id(), r.message),
              r.remedy};
    }
  if (auto ok = models.renew(); !ok) {
    if (ok.error().code != Code::Unsupported) note("the workers do not come back: " + ok.error().message);
    return ok.error();
  }
  note("the workers were exchanged, for the code of the backends that is there now");
  return backends_text();
}

class Serve final : public Command {
 public:
  void declare(Arguments& a) override {
    arguments_ = &a;  // it outlives the command's run
    a.models(kModelHelp, models_);
    a.section("Clients");
    a.text("--host", "ADDRESS", "where to listen (default 127.0.0.1: this machine only); 0.0.0.0: everywhere",
           host_);
    a.whole("--port", "N", "the port (default 8080); 0: any that is free", port_, 0, 65535);
    a.texts("--api-key", "KEY",
            "a key that clients must send; repeatable. Without one, anybody on this machine may ask; for "
            "other machines a key is made up and shown. Others see what is typed: better $GIMBAL_API_KEY",
            keys_);
    a.text("--cors-origin", "ORIGIN", "a web site whose pages may ask, or * (default: none)", cors_origin_);
    a.text("--tls-cert", "FILE", "speak TLS, with this certificate (PEM, those that vouch for it behind it)",
           tls_cert_);
    a.text("--tls-key", "FILE", "the key of the certificate (PEM)", tls_key_);
    a.whole("--header-timeout", "SECONDS", "for the first line and the headers of a request (default 20)",
            header_timeout_, 1, 3600);
    a.whole("--body-timeout", "SECONDS", "for the body of a request (default 50)", body_timeout_, 1, 3600);
    a.section("Log");
    a.flag("--log-json", "tell each request and each note on stderr as an object of JSON", log_json_);
    a.flag("--log-prompts", "tell what requests say, too", log_prompts_);
    a.section("Configuration");
    a.configurable();
    a.section("Models");  // of the server itself: workers get the options of the next two sections
    a.text(
        "--workers", "LIST",
        "devices that answer together, a worker process each: cpu,cuda:0 (default: one worker, on the device "
        "chosen below); none: this process computes",
        workers_);
    a.whole("--keep-alive", "SECONDS", "unload a model that nobody asked for so long (default: never)",
            keep_alive_, 1, 1 << 30);
    a.whole("--drain-timeout", "SECONDS", "what SIGTERM leaves for answers in flight (default 8)", drain_, 0,
            86400);
    gimbal::declare(a, load_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal serve model.gguf --port 8080");
    a.example("gimbal serve llama.gguf qwen.gguf --keep-alive 600");
    a.example("GIMBAL_API_KEY=secret gimbal serve model.gguf --host 0.0.0.0");
    a.example("curl http://127.0.0.1:8080/v1/models");
  }

  Result<int> run() override {
    if (log_json_) note_as_json(api::log_line);
    if (tls_cert_.has_value() != tls_key_.has_value())
      return Error{Code::Usage, "--tls-cert and --tls-key go together", "give both, or none of them"};
    auto serving = serving_options(load_, engine_);
    if (!serving) return serving.error();
    serving->models = std::max(1, int(models_.size()));
    if (quiet) serving->planned = {};
    std::vector<ModelFile> files;
    if (models_.empty()) models_.push_back("default");
    for (const std::string& name : models_) {
      auto file = open_model(name, engine_, quiet);
      if (!file) return file.error();
      files.push_back(std::move(*file));
    }
    auto devices = worker_devices();
    if (!devices) return devices.error();
    allow_many_clients();

    Signals signals(tls_cert_.has_value());
    std::atomic<api::Services*> told{nullptr};
    const auto load = [&](const std::string& id, const ModelFile& source) -> Result<ServedModelPtr> {
      if (devices->empty())
        return load_local_model(backend_registry(), id, source, *serving, tell_on_stderr(quiet));
      RemoteOptions remote{worker_commands(source, *devices), {}};
      remote.replaced = [&told, id](size_t, const std::string& why) {
        if (api::Services* s = told) s->worker_restarts++;
        note(format("a worker of {} was lost ({}); another one goes on with its answers", id, why));
      };
      return load_remote_model(id, source, std::move(remote));
    };
    auto models = LoadedModels::create(std::move(files), keep_alive_.value_or(0), load);
    if (!models) return models.error();
    api::Services services{**models, GIMBAL_VERSION, backends_text};
    services.reload_backends = [&] { return reload_backends(**models); };
    services.log = request_log();
    told = &services;
    api::Api api(services, access());
    http::Server::Options listening{host_.value_or("127.0.0.1"), uint16_t(port_.value_or(8080))};
    listening.limits.head_seconds = header_timeout_.value_or(20);
    listening.limits.body_seconds = body_timeout_.value_or(50);
    listening.tls_certificate = tls_cert_.value_or(""), listening.tls_key = tls_key_.value_or("");
    listening.handler_threads = 64;  // they wait, for models and for embeddings
    auto server = http::Server::listen(listening, api);
    if (!server) return server.error();
    signals.start(**server, services, drain_.value_or(8));
    std::optional<Error> failure;
    {
      Loader loader(**models, services, **server, failure, [&] { tell_ready(**server, **models); });
      (*server)->run();
    }
    signals.stop();
    if (failure) return *failure;
    return kDone;
  }

 private:
  // Loads the first model while requests about health are answered already, then tidies up.
  class Loader {
   public:
    Loader(LoadedModels& models, api::Services& services, http::Server& server, std::optional<Error>& failure,
           std::function<void()> ready)
        : thread_([this, &models, &services, &server, &failure, ready = std::move(ready)] {
            if (auto first = models.get(models.list()[0].id); !first) {
              failure = first.error();
              return server.stop();
            }
            services.set_ready();
            ready();
            std::unique_lock lock(mutex_);
            while (!ended_.wait_for(lock, std::chrono::seconds(5), [&] { return end_; })) models.tidy();
          }) {}
    ~Loader() {
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

  // Where workers compute: an empty location is what the other options choose. None: in this process.
  Result<std::vector<std::string>> worker_devices() const {
    if (!workers_) return std::vector<std::string>{""};
    if (*workers_ == "none") return std::vector<std::string>{};
    if (engine_.backend != "auto" || engine_.device || engine_.split)
      return Error{Code::Usage, "--workers chooses the devices, and so do --backend, --device and --split",
                   "give only one of them"};
    const std::vector<std::string> all = split(*workers_, ',');
    for (const std::string& one : all)
      if (!DeviceLocation::parse(one))
        return Error{
            Code::Usage, format("--workers: {} is no device", gimbal::quoted(one)),
            "write devices with commas between, such as cpu,cuda:0,cuda:1; `gimbal backends` lists them"};
    return all;
  }

  std::vector<std::vector<std::string>> worker_commands(const ModelFile& source,
                                                        const std::vector<std::string>& devices) const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& device : devices) {
      std::vector<std::string> c = {own_path(), "worker",
                                    "--model=" + (source.path.empty() ? "default" : source.path)};
      for (const char* section : {kLoadSection, "Device and kernels"})
        for (std::string& word : arguments_->given(section)) c.push_back(std::move(word));
      if (const auto at = DeviceLocation::parse(device)) {
        c.push_back("--backend=" + at->backend);
        if (at->backend != "cpu") c.push_back(format("--device={}", at->index));
      }
      if (models_.size() > 1) c.push_back(format("--models={}", models_.size()));
      if (quiet) c.push_back("--quiet");
      if (log_json_) c.push_back("--log-json");
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::string own_path() {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? std::string(path, size_t(n)) : "/proc/self/exe";
  }

  api::RequestLog request_log() const {
    api::RequestLog log{log_prompts_, {}};
    if (log_json_ || log_prompts_ || !quiet)
      log.tell = [as_json = log_json_](const api::RequestRecord& r) {
        log_to_stderr(api::log_line(r, as_json));
      };
    return log;
  }

  api::Access access() {
    api::Access a{keys_, cors_origin_.value_or("")};
    if (a.keys.empty() && !http::is_loopback(host_.value_or("127.0.0.1"))) {
      a.keys.push_back(api::generated_key());
      note(format("other machines can reach this server, so a key is needed. It is shown once, here: {}",
                  a.keys[0]));
    }
    needs_key_ = !a.keys.empty();
    return a;
  }

  void tell_ready(const http::Server& server, LoadedModels& models) const {
    const std::string url = (tls_cert_ ? "https://" : "http://") + server.address();
    std::vector<std::string> names;
    for (const KnownModel& m : models.list()) names.push_back(m.id);
    if (json) print_json({{"url", url}, {"models", names}}, true);
    else if (!quiet) note(format("serving {} at {} (Ctrl-C ends it)", fmt::join(names, ", "), url));
    if (!json && !quiet && stderr_is_terminal()) {
      note("  try: " + first_request(from_here(url), names[0], needs_key_));
      if (api::answers("/")) note(format("  or open {}/ in a browser", from_here(url)));
    }
    flush_output();
  }

  std::vector<std::string> models_, keys_;
  std::optional<std::string> host_, cors_origin_;
  std::optional<std::string> workers_, tls_cert_, tls_key_;
  std::optional<int> header_timeout_, body_timeout_;
  bool log_json_ = false, log_prompts_ = false;
  std::optional<int> port_, keep_alive_, drain_;
  LoadOptions load_;
  CommonOptions engine_;
  const Arguments* arguments_ = nullptr;
  bool needs_key_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<Serve>(); }

}  // namespace gimbal
