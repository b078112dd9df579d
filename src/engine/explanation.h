// How a plan is computed, for a page that draws it: memory by kind and device, and the kernel of every op
// with the reason and the kernels that were not taken.
#pragma once
#include "engine/reports.h"

namespace gimbal {

struct Explanation {
  struct OfDevice : DeviceMemory {
    std::string name;                             // of the hardware
    std::optional<double> read_bytes_per_second;  // measured by `gimbal bench`; none: it did not run yet
  };
  struct Stage {  // as PlacedLayers has it
    std::string device, contents, reason;
  };
  // A model has thousands of ops and a device hundreds of kernels: ops that are computed alike share one.
  struct Choice {
    std::string op, format, device, kernel, why;
    std::vector<RejectedKernels> rejected;
  };
  struct Op {
    std::string name, output;  // the shape of its output
    uint64_t choice = 0;       // an index of `choices`
  };
  struct Program {
    std::string purpose;  // "generation", "prompt"
    int rows = 0;         // tokens of a step
    std::vector<Op> ops;
  };

  std::string architecture;
  int layers = 0, context = 0, sequences = 0;
  int64_t cache_tokens = 0;
  int batch = 0;
  std::string kv_type;
  std::vector<OfDevice> devices;
  HostMemory host;
  std::vector<Stage> placement;
  double weight_bytes_per_token = 0;
  std::vector<Program> programs;
  std::vector<Choice> choices;
};

Explanation explain(const ModelPlan&);

// Bytes of weights that a token needs: every matrix whole, one row of an embedding table.
double weight_bytes_per_token(const Program&);

}  // namespace gimbal
