// The details of a plan, for a page that draws it: memory by kind and device, and the kernel of every op
// with the reason and the rejected kernels.
#pragma once
#include "base/json_fwd.h"
#include "engine/reports.h"

namespace gimbal {

struct Explanation {
  struct OfDevice : DeviceMemory {
    std::string name;                             // of the hardware
    std::optional<double> read_bytes_per_second;  // by `gimbal bench`; none: not measured
  };
  struct Stage {  // as PlacedLayers has it
    std::string device, contents, reason;
  };
  // Ops that are computed alike share one: a model has thousands of ops, a device hundreds of kernels.
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
  int64_t cache_tokens = 0, max_context_length = 0;  // the latter as largest_context() gives it
  int batch = 0;
  std::string kv_type;
  RotationChoice kv_rotation;
  bool fast_kernels = false;  // kernels with another order of sums were allowed
  std::vector<OfDevice> devices;
  HostUse host;
  std::vector<Stage> placement;
  double weight_bytes_per_token = 0;
  std::vector<Program> programs;
  std::vector<Choice> choices;
};

Explanation explain(const ModelPlan&);

// Bytes of weights read per token: all of each matrix, one row of an embedding table.
double weight_bytes_per_token(const Program&);

// Reports as JSON, for command lines, the APIs of the server, and other languages. docs/cli.md and
// docs/serving.md have the keys.
Json report_json(const Explanation&);
// {rotated, reason}
Json report_json(const RotationChoice&);
// Bytes by kind.
Json report_json(const MemoryPlan&);
// [{device, layers: [first, last] or null, embedding, head, packed, reason}], an entry for each stage.
Json report_json(const std::vector<PlacedLayers>&);
// [{op, kernel, ops}], without devices.
Json report_json(const std::vector<KernelCount>&);
// [{op, name, inputs, output, device, kernel, why, rejected: [{kernel, why}]}]
Json report_json(const std::vector<ExplainedOp>&);
Json report_json(const PlanReport&);
// Ran: [{op, format, device, kernel, why, ops, runs}]; `runs` is null if a device does not count.
Json receipt_json(const std::vector<ReceiptLine>&);
// The kernels of a model that has not run yet: [{op, format, device, kernel, reason, ops}].
Json kernels_json(const std::vector<ReceiptLine>&);

}  // namespace gimbal
