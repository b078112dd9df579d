// A model that worker processes compute, one for each device that was asked for.
#pragma once
#include <memory>

#include "engine/find_model.h"
#include "server/model.h"
#include "workers/remote_service.h"

namespace gimbal {

struct RemoteOptions {
  std::vector<std::string> command;  // of all workers: the program and its arguments
  std::vector<wire::Load> loads;     // one for each
  // What a user must or may know, from other threads; must not block. `worker`: its index in `loads`.
  std::function<void(size_t worker, const std::string& why)> replaced;
  std::shared_ptr<PromisedMemory> memory;  // of all models of the server
};

// Waits until all of its workers are ready. Errors: those of the workers; of the file; OutOfMemory when they
// fit one by one and not together (workers/together.h).
Result<ServedModelPtr> load_remote_model(std::string id, const ModelFile& source, RemoteOptions options);

}  // namespace gimbal
