#include "apps/worker/service.h"

#include <unistd.h>

#include "apps/reports/backends_json.h"
#include "apps/reports/next_steps.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "apps/worker/hive.h"
#include "discovery/report.h"
#include "huggingface/folder.h"
#include "model/arch.h"
#include "server/api/text.h"
#include "server/computed_model.h"
#include "workers/load.h"

namespace gimbal::worker {
namespace {

constexpr const char* kHiveSection = "Hive";

// The loaded model, behind a scheduler.
class SingleModel final : public ComputedModel {
 public:
  SingleModel(std::string id, std::shared_ptr<const ModelSource> file)
      : ComputedModel(std::move(id), std::move(file)) {}
  ~SingleModel() override { end_texts(); }

  Status prepare(const LoadedModelPtr& on, OnDeviceLost on_device_lost, const SchedulerOptions& options) {
    context_ = on->model->context();
    if (auto ok = generate_on(model_of(on), std::move(on_device_lost), options); !ok) return ok;
    return read_template();
  }

  static Error not_exchanged() {
    return {Code::Unsupported, "the backend of this worker is built in and cannot be replaced",
            "start it again"};
  }
  Status renew() override { return not_exchanged(); }
  Status embed(std::span<const std::vector<Token>>, const EmbeddingSink&) override {
    return Error{Code::Unsupported,
                 "this worker generates text and computes no embeddings",
                 "use `gimbal serve`, which loads the model for both",
                 "",
                 "model",
                 id()};
  }
};

// As `gimbal backends --json`, of the one backend that there is.
std::string backends_text(const About& about, const std::optional<DeviceReport>& device) {
  BackendReport r;
  r.backend = about.backend, r.present = true, r.available = device.has_value();
  if (device) r.devices.push_back(*device);
  else r.message = "its device is being opened";
  const Error none{Code::Unsupported, "this worker chooses no device", ""};
  return dump(backends_json({std::move(r)}, none, {}, 0));
}

// The service during its lifetime. Members are in the order in which they depend on each other.
class Service {
 public:
  Service(const About& about, const ServiceOptions& o, int gpu, EngineOptions options, EventSink events,
          bool quiet)
      : about_(about),
        o_(o),
        gpu_(gpu),
        options_(std::move(options)),
        events_(std::move(events)),
        quiet_(quiet),
        id_(o.id ? *o.id : api::new_id("worker-")),
        http_(o.http, o.json, quiet) {}

  Result<int> run(const std::string& path) {
    auto file = open_source(path);
    if (!file) return file.error();
    if (auto ok = check_generates(*file); !ok) return ok.error();
    auto shared = std::make_shared<const ModelSource>(std::move(*file));
    if (auto ok = plan(*shared); !ok) return ok.error();
    auto models = LoadedModels::create(
        {{shared->path(), path, shared}},
        {.load = [this](const std::string& id, const ModelFile& f, int) { return load(id, f); }});
    if (!models) return models.error();
    auto hive = meet_hive((*models)->list()[0].id);
    if (!hive) return hive.error();

    api::Services services{**models, GIMBAL_VERSION, [this] {
                             const std::lock_guard lock(mutex_);
                             return backends_text(about_, device_);
                           }};
    services.reload_backends = []() -> Result<std::string> { return SingleModel::not_exchanged(); };
    services.worker_id = id_;
    HttpEvents events;
    if (*hive) {
      events.ready = [&](const http::Server& s) { (*hive)->ready(from_here(http_.url(s), host_name())); };
      events.draining = [&] { (*hive)->draining(); };
    }
    const Status served = http_.run(**models, services, events, Json::object({{"worker_id", id_}}));
    models->reset();  // running requests still report to `services`
    if (!served) return served.error();
    return kDone;
  }

 private:
  // For the requested number of simultaneous texts.
  Status plan(const ModelSource& file) {
    auto config = configure(file);
    if (!config) return config.error();
    const int context = options_.run.context > 0 ? options_.run.context : default_context(*config);
    options_.cache = plan_for_many(options_.run, context, o_.sharing.parallel.value_or(kTextsAtOnce),
                                   o_.sharing.cache_tokens.value_or(0), 1);
    return Done{};
  }

  Result<ServedModelPtr> load(const std::string& id, const ModelFile& source) {
    auto loaded = about_.load(source.file, gpu_, options_, events_);
    if (!loaded) return loaded.error();
    if (!quiet_) print_cache_size(loaded->on->model->plan());
    {
      const std::lock_guard lock(mutex_);
      device_ = report_of(*loaded->on->opened.device, gpu_);
    }
    SchedulerOptions scheduling;
    scheduling.queue = o_.sharing.queue.value_or(scheduling.queue);
    auto model = std::make_shared<SingleModel>(id, source.file);
    const auto lost = [this](const Error& why, const MoveTo&) { return end(why); };
    if (auto ok = model->prepare(loaded->on, lost, scheduling); !ok) return ok.error();
    return ServedModelPtr(std::move(model));
  }

  // There is no other device. The worker's parent restarts it, or starts another one.
  Status end(const Error& lost) {
    Error e = lost;
    e.remedy = format("this program holds the {} backend alone and computes nowhere else: start it again",
                      about_.backend);
    http_.end(e);
    return e;
  }

  // nullptr: no hive.
  Result<std::unique_ptr<Hive>> meet_hive(const std::string& model) const {
    if (!o_.hive) return std::unique_ptr<Hive>();
    HiveOptions h{*o_.hive, id_, model, about_.backend, gpu_};
    h.interval = o_.heartbeat.value_or(int(h.interval));
    if (!quiet_) h.log = [](const std::string& text) { note(printable(text)); };
    return Hive::create(std::move(h));
  }

  static std::string host_name() {
    char name[256] = "";
    return gethostname(name, sizeof name - 1) == 0 && *name ? name : "127.0.0.1";
  }

  const About& about_;
  const ServiceOptions& o_;
  const int gpu_;
  EngineOptions options_;
  const EventSink events_;
  const bool quiet_;
  const std::string id_;
  HttpService http_;
  std::mutex mutex_;
  std::optional<DeviceReport> device_;
};

}  // namespace

void declare(Arguments& a, ServiceOptions& o) {
  gimbal::declare(a, o.http, "serve the model on this port; 0: any free port");
  a.flag("--json", "print the address and the worker's id on stdout, as a JSON object", o.json);
  gimbal::declare(a, o.sharing);
  a.section(kHiveSection);
  a.text("--worker-id", "ID", "the name of this worker (default: generated)", o.id);
  a.text("--hive-url", "URL", "register with the hive at this address, and send it heartbeats", o.hive);
  a.whole("--heartbeat", "SECONDS", "interval of the heartbeats (default 30)", o.heartbeat, 1, 3600);
  a.section("Configuration");
  a.configurable([&o] { return o.http.port.has_value(); });
}

Status check(const Arguments& a, const ServiceOptions& o) {
  const bool serves = o.http.port.has_value();
  const auto typed = [&](std::initializer_list<const char*> sections) {
    for (const char* s : sections)
      for (const std::string& option : a.typed(s)) return option;
    return std::string();
  };
  if (const std::string option =
          typed({kClientsSection, kLogSection, kLoadSection, kHiveSection, "Configuration"});
      !serves && !option.empty())
    return Error{Code::Usage, format("{} is for a worker that serves, but there is no port", option),
                 "add --port N, or leave it out"};
  if (const std::string option = typed({"Text", "Sampling"}); serves && !option.empty())
    return Error{Code::Usage, format("{} is for a single text; with --port each request has its own", option),
                 format("leave out {}, or --port", option)};
  if (o.id && !is_worker_id(*o.id))
    return Error{Code::Usage,
                 format("--worker-id must be 1 to 128 letters, digits, '-', '_' and '.', a letter or a digit "
                        "first, not {}",
                        gimbal::quoted(*o.id)),
                 "for example --worker-id worker-1"};
  if (o.heartbeat && !o.hive)
    return Error{Code::Usage, "--heartbeat is the interval of messages to a hive, and no hive is given",
                 "add --hive-url URL, or leave it out"};
  return serves ? apply(o.http) : Done{};
}

Result<int> serve(const About& about, const ServiceOptions& o, const std::string& model, int gpu,
                  EngineOptions options, EventSink events, bool quiet) {
  return Service(about, o, gpu, std::move(options), std::move(events), quiet).run(model);
}

}  // namespace gimbal::worker
