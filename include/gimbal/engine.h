// Start here: an engine finds devices and loads models on them.
//
// Before use, kernels are verified against a double-precision reference, and models against themselves and
// the CPU. A device or kernel that fails is replaced by the next best one, with the reason; under `strict`
// this is an error.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gimbal/certificate.h"
#include "gimbal/device.h"
#include "gimbal/kernels.h"
#include "gimbal/memory.h"
#include "gimbal/model.h"
#include "gimbal/plan.h"
#include "gimbal/prefix_store.h"
#include "gimbal/settings.h"

namespace gimbal::v1 {

// A notice or progress report for the user of a program.
struct Event {
  enum Kind {
    Chosen,     // `what` is the device that will be used
    Fallback,   // `what` is not used; `instead` replaces it, if it is not empty
    Ignored,    // the setting `what` has no effect, or a smaller one than requested
    Note,       // no action needed
    Recovered,  // the device `what` was lost; a sequence continues on `instead`
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
  // Of all models of the engine that generate text. A model whose pages cannot be stored is an error of
  // load(), with the reason.
  PrefixStoreSettings prefix_store;
  // Called from the thread that called the engine. Returning false cancels the work that a Verifying,
  // Measuring or Loading event reports.
  std::function<bool(const Event&)> events;
};

// The result of replacing a backend's code.
struct Reloaded {
  struct Code {
    std::string plugin;  // its file; empty: linked into the program, or none
    std::string build;   // its build id; empty: never opened
  };
  std::string backend;
  Code before, now;
  bool draining = false;             // some models still run on the old code
  std::vector<std::string> devices;  // opened by the new code
  size_t kernels = 0;                // verified on them before the replacement
};

// A handle: copies share one engine, which its models keep alive. One thread at a time.
class Engine {
 public:
  explicit Engine(Options = {});

  // `model`: a GGUF file, a name (as `gimbal models` lists them), the address of a model that was pulled, or
  // "default", the small model inside the library. Errors: NotFound; Malformed and Unsupported files; Usage
  // for settings out of range; NoBackend, OutOfMemory with every reason.
  Result<Model> load(const std::string& model, const ModelOptions& = {});
  // The same with devices and kernels for this model alone, in place of the engine's.
  Result<Model> load(const std::string& model, const ModelOptions&, const DeviceSettings&);
  Result<Model> load(const ModelSpec&);

  // The plan that load() would carry out, from the file's header alone: placement, memory, reasons. Nothing
  // is loaded or verified. Errors: as load(), but for memory: see ModelPlan::fits.
  Result<ModelPlan> plan(const std::string& model, const ModelOptions& = {});

  // The same plan after verification, with the kernel of every op, the reason for it, and the rejected
  // kernels. Errors: as load().
  Result<Explanation> explain(const std::string& model, const ModelOptions& = {});

  // The model files on this machine, sorted by name: in the current folder, $GIMBAL_MODELS, and the caches of
  // gimbal, Hugging Face, Ollama and LM Studio. Reads no file.
  std::vector<LocalModel> models() const;

  // Computes the logits of answers again and compares. Loads each model once for all certificates with its
  // settings; their rows share steps. A result for each certificate, in order. Errors: invalid settings of
  // the engine; those of one certificate are in its Audit::error, and errors of the second form.
  Result<std::vector<Audit>> audit(std::span<const Certificate> certificates, const AuditOptions& = {});
  Result<Audit> audit(const Certificate& certificate, const AuditOptions& = {});

  // Every known backend with its devices, or the reason why it has none. Probes each driver in a process of
  // its own, which takes up to a few seconds.
  std::vector<Backend> backends();

  // The device for a model that takes `bytes` (estimate_memory(); 0: unknown). Uses load()'s selection rules.
  // Skips devices with less free memory; never splits layers. Opens nothing. Errors: NoBackend, OutOfMemory
  // with every reason; under `strict` also when the requested backend is not available.
  Result<Device> best_device(uint64_t bytes = 0);
  // Where a model of these dimensions goes: all of it on one GPU; else the last layers and the output head on
  // the best GPU, as many as its free memory takes, and the others on the CPU (not under `strict`); else all
  // on the CPU. In the order of the layers. An estimate, within 3 % for llama-like models: plan() reads a
  // file. Opens nothing. Errors: those of estimate_memory() and best_device().
  Result<std::vector<Placement>> best_placement(const ModelShape&);
  // backends() and best_device() for people: a text of several lines.
  std::string summary();

  // Every kernel of the devices that can be opened: the table that decides which kernel computes an op.
  std::vector<Kernel> kernels();

  // The kernels of the dual-backend roadmap: which of them the devices of this machine can compute, or why
  // not. Opens nothing: as backends().
  KernelCapabilities kernel_capabilities();
  // Whether a device of this machine can compute a kernel: a name of the registry, or a shell pattern over
  // Kernel::name ("cpu.avx2.mat_mul.q8_0"). Errors: Usage if there is no such name.
  Result<bool> is_capable_of(const std::string& kernel);
  // The largest context of a model: the one it was trained on, or less if the memory is short; 0: not even
  // one page fits. From the file's header alone. Errors: as plan().
  Result<int64_t> max_context_length(const std::string& model, const ModelOptions& = {});

  // Replaces the code of a backend by the plugin in this file, after verifying it. Already loaded models keep
  // running on the old code. Errors, which change nothing: NoBackend with the reason.
  Result<Reloaded> reload_backend(const std::string& plugin);

  // Of Options::prefix_store; zeros before the first model is loaded. Thread-safe.
  PrefixStoreNumbers prefix_store_numbers() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
