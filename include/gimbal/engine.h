// Where everything begins: an engine looks for devices and loads models on them.
//
// Whatever it runs on was verified there first: kernels against a double-precision reference, the model
// against itself and the CPU. What fails is replaced by the next best, with the reason; or, if strict,
// refused.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gimbal/device.h"
#include "gimbal/model.h"
#include "gimbal/settings.h"

namespace gimbal::v1 {

// Something that the user of a program must or may know.
struct Event {
  enum Kind {
    Chosen,     // `what` is the device that will be used
    Fallback,   // `what` is not used; `instead` is, where it is not empty
    Ignored,    // the setting `what` has no effect, or less than was asked for
    Note,       // nothing to act on
    Recovered,  // `what` was lost; a sequence goes on on `instead`
    Verifying,  // progress: `done` of `total` kernels
    Loading,    // progress: `done` of `total` bytes
    Measuring,  // progress: `done` of `total` products that are timed to choose their kernels
  } kind;
  std::string what, instead;
  Error why;  // its message, and for fallbacks and losses its reason
  uint64_t done = 0, total = 0;
};

struct Options : DeviceSettings {
  // Folders with plugins (gimbal_PLUGIN_DIR of find_package), searched first; then those of
  // $GIMBAL_BACKEND_PATH and the program's own.
  std::vector<std::string> plugin_folders;
  // Called from the thread that called the engine. Returning false cancels the work that a Verifying,
  // Measuring or Loading event reports.
  std::function<bool(const Event&)> events;
};

// What an exchange of a backend's code did.
struct Reloaded {
  struct Code {
    std::string plugin;  // its file; empty: part of the program, or there was none
    std::string build;   // its build id; empty: it was never opened
  };
  std::string backend;
  Code before, now;
  bool draining = false;             // models still compute with the code before
  std::vector<std::string> devices;  // that the new code opened
  size_t kernels = 0;                // verified on them before the exchange
};

// A handle: copies share one engine, which its models keep alive. One thread at a time.
class Engine {
 public:
  explicit Engine(Options = {});

  // `model`: a GGUF file, a name (as `gimbal models` lists them), or "default", the small one inside the
  // library. Errors: NotFound; Malformed and Unsupported files; Usage for settings that make no sense;
  // NoBackend, OutOfMemory with every reason.
  Result<Model> load(const std::string& model, const ModelOptions& = {});

  // Every known backend with its devices, or the reason why it has none. Asks each driver, in a process of
  // its own: takes a moment.
  std::vector<Backend> backends();

  // The device for a model that takes `bytes` (estimate_memory(); 0: not known), by the same rules as load():
  // those with less free memory are passed over, layers of a model do not count here. Nothing is opened.
  // Errors: NoBackend, OutOfMemory with every reason; under `strict` where the backend that was asked for
  // cannot be had.
  Result<Device> best_device(uint64_t bytes = 0);
  // backends() and best_device() for people: a text of several lines.
  std::string summary();

  // Replaces the code of a backend by the plugin in this file, while models run: those that are loaded go on
  // with the code they have, what is loaded afterwards gets the new one. It is verified before. Errors, which
  // change nothing: NoBackend with the reason.
  Result<Reloaded> reload_backend(const std::string& plugin);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
