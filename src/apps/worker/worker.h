// The command line of gimbal-worker-<name>: generates text from a model file on the one backend it holds, or
// serves it.
#pragma once
#include <functional>

#include "apps/worker/load.h"

namespace gimbal::worker {

// What the command line needs to know of the build.
struct About {
  const char* backend;
  bool has_gpus;
  // load<Backend>; `gpu` counts only where there are GPUs.
  std::function<Result<Loaded>(const Source&, int gpu, const EngineOptions&, const EventSink&)> load;
};

// Everything that does not depend on the backend. Never throws; answers the exit code (apps/exit_code.h).
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

}  // namespace gimbal::worker
