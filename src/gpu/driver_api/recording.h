// Launches recorded for replay: their arguments in the driver's form,
// and the order constraints between them.
#pragma once
#include <memory>
#include <vector>

#include "gpu/driver_api/session.h"

namespace gimbal::gpu::driver_api {

struct DriverBuffer : Buffer {
  uint64_t at = 0, bytes = 0;
};
struct DriverKernel : Kernel {
  KernelCode facts;
  void* function = nullptr;
};

class DriverRecording : public Recording {
 public:
  DriverRecording(Session& session, std::span<const Launch>);
  ~DriverRecording();

  // Builds the graph; does nothing if the driver has no graphs.
  Failure record();
  // Allocates nothing.
  Failure replay();

 private:
  struct Prepared {
    const DriverKernel* kernel;
    uint32_t groups[3];
    uint64_t address[kMaxBindings + 1];  // of the buffers, then of the step data
    uint8_t params[kMaxParamBytes];
    void* argument[kMaxBindings + 2];  // addresses of these and of the params
  };
  struct Phase {  // launches that may run concurrently
    size_t begin, end;
  };
  Failure enqueue();
  Failure launch(Prepared&, void* stream);

  Session& session_;
  std::vector<Prepared> launches_;
  std::vector<Phase> phases_;
  void* graph_ = nullptr;
  void* instance_ = nullptr;
};

}  // namespace gimbal::gpu::driver_api
