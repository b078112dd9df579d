// The C interface: errors, cancelling, engines and the loading of models.

#include "library/c_handles.h"

#include <gimbal/pull.h>

using namespace gimbal::v1;

namespace gimbal::v1::c {
namespace {

// The call whose progress is reported, of each thread: an engine's models may report from several.
struct Watching {
  gimbal_progress progress;
  void* user;
  const gimbal_cancel* cancel;
  bool stopped = false;

  bool tell(int kind, const std::string& what, const std::string& text, uint64_t done, uint64_t total) {
    const bool wanted = !progress || progress(kind, what.c_str(), text.c_str(), done, total, user);
    if (!wanted || cancelled(cancel)) stopped = true;
    return !stopped;
  }
};
thread_local Watching* watching = nullptr;

class Watch {
 public:
  explicit Watch(Watching& w) { watching = &w; }
  ~Watch() { watching = nullptr; }
};

bool tell(const Event& e) {
  if (!watching) return true;
  std::string text = e.why.message;
  if (!e.instead.empty()) text += format("{}{} is used", text.empty() ? "" : "; ", e.instead);
  return watching->tell(int(e.kind), e.what, text, e.done, e.total);
}

Error cancelled_error() { return {Code::Failed, "cancelled", "", "cancelled", "", "", "", {}}; }

}  // namespace

gimbal_result fail(gimbal_error** to, Error e) noexcept {
  const gimbal_result code = int(e.code) + 1;
  if (to) *to = new (std::nothrow) gimbal_error{std::move(e)};
  return code;
}

Status given(std::initializer_list<std::pair<const char*, const void*>> arguments) {
  for (const auto& [name, pointer] : arguments)
    if (!pointer) return usage(format("'{}' is NULL", name), "", name);
  return Done{};
}

}  // namespace gimbal::v1::c

using namespace gimbal::v1::c;

uint32_t gimbal_c_abi(void) { return GIMBAL_C_ABI; }
const char* gimbal_version(void) { return GIMBAL_VERSION; }

gimbal_result gimbal_error_code(const gimbal_error* e) { return e ? int(e->value.code) + 1 : GIMBAL_DONE; }
const char* gimbal_error_message(const gimbal_error* e) { return e ? e->value.message.c_str() : ""; }
const char* gimbal_error_remedy(const gimbal_error* e) { return e ? e->value.remedy.c_str() : ""; }
const char* gimbal_error_reason(const gimbal_error* e) { return e ? e->value.reason.c_str() : ""; }
const char* gimbal_error_field(const gimbal_error* e) { return e ? e->value.field.c_str() : ""; }
void gimbal_error_free(gimbal_error* e) { delete e; }
void gimbal_free(void* memory) { std::free(memory); }

gimbal_cancel* gimbal_cancel_new(void) { return new (std::nothrow) gimbal_cancel; }
void gimbal_cancel_now(gimbal_cancel* c) {
  if (c) c->wanted.store(true, std::memory_order_relaxed);
}
void gimbal_cancel_free(gimbal_cancel* c) { delete c; }

gimbal_result gimbal_engine_new(const char* options, gimbal_engine** engine, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"engine", engine}}); !ok) return ok;
    *engine = nullptr;
    Options o;
    if (auto ok = read(options, o); !ok) return ok;
    o.events = tell;
    *engine = new gimbal_engine{Engine(std::move(o))};
    return Done{};
  });
}
void gimbal_engine_free(gimbal_engine* engine) { delete engine; }

gimbal_result gimbal_backends(gimbal_engine* engine, char** json, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"engine", engine}, {"json", json}}); !ok) return ok;
    *json = nullptr;
    *json = copy(json_text(engine->engine.backends()));
    return Done{};
  });
}

gimbal_result gimbal_models(gimbal_engine* engine, char** json, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"engine", engine}, {"json", json}}); !ok) return ok;
    *json = nullptr;
    *json = copy(json_text(engine->engine.models()));
    return Done{};
  });
}

namespace {

// plan() or explain(): from the options to the JSON of the result.
template <class T>
gimbal_result planned(gimbal_engine* engine, const char* model, const char* options, char** json,
                      gimbal_error** error,
                      Result<T> (Engine::*plan)(const std::string&, const ModelOptions&)) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"engine", engine}, {"model", model}, {"json", json}}); !ok) return ok;
    *json = nullptr;
    ModelOptions o;
    if (auto ok = read(options, o); !ok) return ok;
    auto found = (engine->engine.*plan)(model, o);
    if (!found) return found.error();
    *json = copy(json_text(*found));
    return Done{};
  });
}

}  // namespace

gimbal_result gimbal_plan(gimbal_engine* engine, const char* model, const char* options, char** json,
                          gimbal_error** error) {
  return planned(engine, model, options, json, error, &Engine::plan);
}
gimbal_result gimbal_explain(gimbal_engine* engine, const char* model, const char* options, char** json,
                             gimbal_error** error) {
  return planned(engine, model, options, json, error, &Engine::explain);
}

gimbal_result gimbal_load(gimbal_engine* engine, const char* model, const char* options,
                          gimbal_progress progress, void* user, const gimbal_cancel* cancel,
                          gimbal_model** loaded, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"engine", engine}, {"model", model}, {"loaded", loaded}}); !ok) return ok;
    *loaded = nullptr;
    ModelOptions o;
    if (auto ok = read(options, o); !ok) return ok;
    if (cancelled(cancel)) return cancelled_error();
    Watching watching{progress, user, cancel};
    const Watch watch(watching);
    auto made = engine->engine.load(model, o);
    if (watching.stopped || cancelled(cancel)) return cancelled_error();
    if (!made) return made.error();
    *loaded = new gimbal_model{std::move(*made)};
    return Done{};
  });
}
void gimbal_model_free(gimbal_model* model) { delete model; }

gimbal_result gimbal_model_info(gimbal_model* model, char** json, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"json", json}}); !ok) return ok;
    *json = nullptr;
    *json = copy(json_text(model->model));
    return Done{};
  });
}

gimbal_result gimbal_pull(const char* address, const char* options, gimbal_progress progress, void* user,
                          const gimbal_cancel* cancel, char** path, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"address", address}, {"path", path}}); !ok) return ok;
    *path = nullptr;
    Pulling wanted;
    if (auto ok = read(options, wanted); !ok) return ok;
    Watching watching{progress, user, cancel};
    PullOptions o{wanted.connections, wanted.sha256, [&](const PullEvent& e) {
                    const int kind = e.kind == PullEvent::Checking ? GIMBAL_EVENT_CHECKING
                                     : e.kind == PullEvent::Note   ? GIMBAL_EVENT_NOTE
                                                                   : GIMBAL_EVENT_FETCHING;
                    return watching.tell(kind, e.file, e.text, e.done, e.total);
                  }};
    auto pulled = pull(address, o);
    if (!pulled) return watching.stopped ? cancelled_error() : pulled.error();
    *path = copy(pulled->path);
    return Done{};
  });
}
