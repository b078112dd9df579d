// A model computed by worker processes, one per requested device.
#pragma once
#include <memory>

#include "engine/find_model.h"
#include "server/model.h"
#include "workers/remote_service.h"

namespace gimbal {

struct RemoteOptions {
  std::vector<std::string> command;  // for all workers: the program and its arguments
  std::vector<wire::Load> loads;     // one per worker
  // Receives notices for the user, on other threads; must not block. `worker`: its index in `loads`.
  std::function<void(size_t worker, const std::string& why)> replaced;
  std::shared_ptr<MemoryReservations> memory;  // shared by all models of the server
  std::shared_ptr<PageStore> pages = {};       // the prefix store; nullptr: none
};

// Waits until all its workers are ready. Errors: those of the workers; of the file; OutOfMemory if they fit
// one by one but not together (workers/memory_reservations.h).
Result<ServedModelPtr> load_remote_model(std::string id, const ModelFile& source, RemoteOptions options);

}  // namespace gimbal
