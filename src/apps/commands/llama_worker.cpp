// gimbal llama-worker: the child process that runs a libllama for `gimbal crossval`, on the socket that it
// inherits.
#include <sys/socket.h>

#include "apps/commands/command.h"
#include "llama/llama_process.h"
#include "workers/worker_process.h"

namespace gimbal {
namespace {

class LlamaWorker final : public Command {
 public:
  void declare(Arguments&) override {}  // everything comes through the socket

  Result<int> run() override {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(kWorkerSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
      return Error{Code::Usage, "it is started by `gimbal crossval`, with a socket to it",
                   "run `gimbal crossval`"};
    return llama::serve_library(kWorkerSocket);
  }
};

}  // namespace

std::unique_ptr<Command> make_llama_worker() { return std::make_unique<LlamaWorker>(); }

}  // namespace gimbal
