// How fast a model whose experts are read from disk (runtime/disk_experts.h) can be on this machine:
// measured, before it is loaded, with reads of its own experts.
#pragma once
#include "base/result.h"
#include "runtime/model_plan.h"

namespace gimbal {

struct ExpertSpeed {
  double disk = 0;    // bytes/s: experts in random order, one after the other, past the system's page cache
  double memory = 0;  // bytes/s: read by as many threads as the device has
  uint64_t of_token = 0, computed = 0;  // bytes of the experts that a token chooses; of all that it reads
  bool direct = false;                  // past the page cache; else the system copies each byte once more
  // Tokens/s of one text: if no chosen expert is in memory; if all are chosen equally often, so that the
  // share of them in memory is that of the budget. Texts that choose some more often are faster than the
  // latter.
  double at_least = 0, evenly = 0;
};

// Reads some tens of megabytes, for half a second at most. Errors: Usage if no stage of the plan reads
// experts (with packed weights); those of FilePages.
Result<ExpertSpeed> measure_experts(const ModelPlan&);

}  // namespace gimbal
