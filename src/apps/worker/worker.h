// The command line of gimbal-worker-<name>: generates text from a model file on its only backend, or serves
// the model.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/worker/load.h"
#include "base/result.h"

namespace gimbal::worker {

// The build's properties, for the command line.
struct About {
  const char* backend;
  bool has_gpus;
  // load<Backend>; `gpu` is ignored for backends without GPUs.
  std::function<Result<Loaded>(const Source&, int gpu, const EngineOptions&, const EventSink&)> load;
};

// All code that does not depend on the backend. Never throws; returns the exit code (apps/exit_code.h).
int run(const About& about, int argc, char** argv);

template <class Backend>
int run(int argc, char** argv) {
  const auto of_backend = [](const Source& from, [[maybe_unused]] int gpu, const EngineOptions& options,
                             const EventSink& events) {
    if constexpr (Backend::kHasGpus) return load<Backend>(from, gpu, options, events);
    else return load<Backend>(from, options, events);
  };
  return run(About{Backend::kName, Backend::kHasGpus, of_backend}, argc, argv);
}

// The answer to options that only other builds of gimbal have. Knows no names of other backends; the
// option's own name identifies the build.
inline std::string program_name(const std::string& backend) { return "gimbal-worker-" + backend; }

// Usage, naming the build that takes `option`; nullopt if no such build is known, or if it is more likely a
// misspelt option of this one.
std::optional<Error> option_of_another_build(const std::string& option, const std::string& backend,
                                             bool has_gpus);

}  // namespace gimbal::worker
