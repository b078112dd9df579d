// The child process: runs a libllama for gimbal, by the protocol of protocol.h.
#pragma once

namespace gimbal::llama {

// Answers requests on the socket until its other end closes. After a model is loaded, the process gives up
// files, connections and other programs (workers/sandbox.h), as workers on the CPU do. Returns the exit code.
int serve_library(int socket);

}  // namespace gimbal::llama
