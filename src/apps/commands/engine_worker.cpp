// gimbal worker: a process that computes for `gimbal serve`, on the socket that it inherits.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "apps/commands/command.h"
#include "apps/options/serving_options.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/find_model.h"
#include "server/api/request_log.h"
#include "store/page_client.h"
#include "workers/memory_reservations.h"
#include "workers/sandbox.h"
#include "workers/worker_loop.h"
#include "workers/worker_process.h"

namespace gimbal {
namespace {

class EngineWorker final : public Command {
 public:
  void declare(Arguments&) override {}  // load options come through the socket

  Result<int> run() override {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(kWorkerSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
      return Error{Code::Usage, "a worker is started by `gimbal serve`, with a socket to it",
                   "run `gimbal serve`"};
    auto told = wait_for_load(kWorkerSocket);
    if (!told) return told.error();
    if (told->log_json) note_as_json(api::log_line);
    auto served = load(std::move(*told));
    if (!served && unwanted_) return kDone;  // the front has said why, or is gone
    if (!served) {
      send_failed(kWorkerSocket, served.error());
      return served.error();
    }
    loaded_ = true;
    ServedModel& model = **served;
    wire::Hello hello;
    hello.context = model.context(), hello.pid = int(getpid());
    hello.generates = model.generation() != nullptr;
    hello.devices = model.devices(), hello.kernels = model.kernels();
    for (Explanation& e : model.explanations()) hello.explanation = std::move(e);
    enter_sandbox_where_possible(model);

    WorkerLoop loop{kWorkerSocket, model.generation(), {}, {}};
    loop.numbers = [&] {
      const auto all = model.numbers();
      return all.empty() ? SchedulerNumbers{} : all[0];
    };
    // One that generates would load the model once more for that, and cannot any more.
    if (!hello.generates)
      loop.embed = [&](std::span<const std::vector<Token>> texts, const ServedModel::EmbeddingSink& sink) {
        return model.embed(texts, sink);
      };
    loop.saved = model.saved_prompts();
    if (auto ok = serve_front(loop, hello); !ok) return ok.error();
    return kDone;
  }

 private:
  Result<ServedModelPtr> load(wire::Load&& from) {
    auto options = serving_options(from.settings);
    if (!options) return options.error();
    options->engine.run.promised = from.promised;
    if (from.quiet) options->planned = {};
    options->lora = file_options(from.settings.model).lora, options->salt = from.salt;
    if (from.stores_pages) {
      auto store = PageStore::create(std::make_unique<PageClient>(kPageSockets[0], kPageSockets[1]),
                                     [](const std::string& s) { note(printable(s)); });
      if (!store) return store.error();
      options->pages = std::move(*store);
    }
    options->engine.before_taking = [this](const ModelPlan& plan) -> Status {
      if (loaded_) return Done{};  // a replacement of a lost device: the front waits for no plan
      const Status ok = ask_for_memory(kWorkerSocket, planned_needs(plan));
      unwanted_ = !ok;
      return ok;
    };
    auto file = open_model_file(from.model, file_options(from.settings.model));
    if (!file) return file.error();
    const EventSink told = stderr_sink(from.quiet);
    return load_local_model(backend_registry(), file->name, *file, *options, [told](const Event& e) {
      const auto* p = std::get_if<event::Progress>(&e);
      if (p && p->stage == event::Progress::Loading) send_loading(kWorkerSocket, p->done, p->total);
      return p || told(e);
    });
  }

  // Drivers of GPUs open files at any time.
  void enter_sandbox_where_possible(const ServedModel& model) {
    for (const DeviceUse& used : model.devices())
      if (!used.host)
        return note(format("worker {}: no sandbox: the driver of {} needs files", getpid(), used.device));
    const Sandbox s = enter_sandbox();
    if (!s.missing.empty())
      note(format("worker {}: its sandbox lacks {}", getpid(), fmt::join(s.missing, ", ")));
  }
  bool unwanted_ = false;
  std::atomic<bool> loaded_ = false;
};

}  // namespace

std::unique_ptr<Command> make_worker() { return std::make_unique<EngineWorker>(); }

}  // namespace gimbal
