// gimbal serve: models behind the APIs that other programs speak.
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "apps/backends_json.h"
#include "apps/command.h"
#include "apps/json.h"
#include "apps/options.h"
#include "apps/tell.h"
#include "apps/terminal.h"
#include "base/clock.h"
#include "engine/find_model.h"
#include "server/api/api.h"
#include "server/api/text.h"
#include "server/loaded_models.h"

namespace gimbal {
namespace {

// The first signal drains the server, the second one ends it. A thread of its own waits for them, so that
// nothing else is ever interrupted.
class Signals {
 public:
  // Before any other thread is started: they inherit that the signals are blocked.
  Signals() {
    sigemptyset(&all_);
    for (int s : {SIGTERM, SIGINT, SIGUSR2}) sigaddset(&all_, s);
    pthread_sigmask(SIG_BLOCK, &all_, &before_);
  }
  void start(http::Server& server, api::Services& services, double drain_seconds) {
    thread_ = std::thread([this, &server, &services, drain_seconds] {
      timespec limit{std::time_t(drain_seconds),
                     long((drain_seconds - double(std::time_t(drain_seconds))) * 1e9)};
      if (sigwaitinfo(&all_, nullptr) == SIGUSR2) return;
      services.draining = true;
      server.drain();
      sigtimedwait(&all_, nullptr, &limit);  // or the server has ended
      server.stop();
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

class Serve final : public Command {
 public:
  void declare(Arguments& a) override {
    a.models(kModelHelp, models_);
    a.section("Clients");
    a.text("--host", "ADDRESS", "where to listen (default 127.0.0.1: this machine only); 0.0.0.0: everywhere",
           host_);
    a.whole("--port", "N", "the port (default 8080); 0: any that is free", port_, 0, 65535);
    a.texts("--api-key", "KEY",
            "a key that clients must send; repeatable. Also $GIMBAL_API_KEY. Without one, anybody on this "
            "machine may "
            "ask; for other machines a key is made up and shown",
            keys_);
    a.text("--cors-origin", "ORIGIN", "a web site whose pages may ask, or * (default: none)", cors_origin_);
    a.section("Load");
    a.whole("--parallel", "N", "requests that a model answers at once (default 64)", parallel_, 1, 1024);
    a.whole(
        "--cache-tokens", "N",
        "tokens of KV cache for all of them (default: a context for each, but at most 32768 or 4 contexts)",
        cache_tokens_, int64_t(1), int64_t(1) << 40);
    a.whole("--queue", "N", "requests that may wait; more are told to come again (default 256)", queue_, 0,
            100000);
    a.whole("--keep-alive", "SECONDS", "unload a model that nobody asked for so long (default: never)",
            keep_alive_, 1, 1 << 30);
    a.whole("--drain-timeout", "SECONDS", "what SIGTERM leaves for answers in flight (default 8)", drain_, 0,
            86400);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal serve model.gguf --port 8080");
    a.example("gimbal serve llama.gguf qwen.gguf --keep-alive 600");
    a.example("GIMBAL_API_KEY=secret gimbal serve model.gguf --host 0.0.0.0");
    a.example("curl http://127.0.0.1:8080/v1/models");
  }

  Result<int> run() override {
    auto options = engine_options(engine_);
    if (!options) return options.error();
    std::vector<ModelFile> files;
    if (models_.empty()) models_.push_back("default");
    for (const std::string& name : models_) {
      auto file = open_model_file(name, file_options(engine_));
      if (!file) return file.error();
      files.push_back(std::move(*file));
    }
    ServingOptions serving{std::move(*options)};
    serving.parallel = parallel_.value_or(64);
    serving.cache_tokens = cache_tokens_.value_or(0);
    serving.keep_alive = keep_alive_.value_or(0);
    serving.scheduler.queue = queue_.value_or(256);
    allow_many_clients();

    Signals signals;
    auto models = LoadedModels::create(backend_registry(), std::move(files), serving, tell_on_stderr(quiet));
    if (!models) return models.error();
    api::Services services{**models, GIMBAL_VERSION, backends_text, [&m = **models] { return m.numbers(); }};
    api::Api api(services, access());
    http::Server::Options listening{host_.value_or("127.0.0.1"), uint16_t(port_.value_or(8080))};
    listening.handler_threads = 16;  // they wait, for models and for embeddings
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

  api::Access access() {
    api::Access a{keys_, cors_origin_.value_or("")};
    if (const char* key = std::getenv("GIMBAL_API_KEY"); key && *key) a.keys.push_back(key);
    if (a.keys.empty() && !http::is_loopback(host_.value_or("127.0.0.1"))) {
      a.keys.push_back(api::generated_key());
      note(format("other machines can reach this server, so a key is needed. It is shown once, here: {}",
                  a.keys[0]));
    }
    return a;
  }

  void tell_ready(const http::Server& server, LoadedModels& models) const {
    const std::string url = "http://" + server.address();
    std::vector<std::string> names;
    for (const KnownModel& m : models.list()) names.push_back(m.id);
    if (json) print_json({{"url", url}, {"models", names}}, true);
    else if (!quiet) note(format("serving {} at {} (Ctrl-C ends it)", fmt::join(names, ", "), url));
    flush_output();
  }

  std::vector<std::string> models_, keys_;
  std::optional<std::string> host_, cors_origin_;
  std::optional<int> port_, parallel_, queue_, keep_alive_, drain_;
  std::optional<int64_t> cache_tokens_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<Serve>(); }

}  // namespace gimbal
