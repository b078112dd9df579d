// Reports as JSON, for command lines, the APIs of the server, and other languages. docs/cli.md and
// docs/serving.md have the keys.
#pragma once
#include "base/json_fwd.h"
#include "engine/explanation.h"

namespace gimbal {

Json report_json(const Explanation&);
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
