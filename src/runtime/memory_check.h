// Whether a plan fits in what its devices and the host have free, and if not, what would.
#pragma once
#include <vector>

#include "runtime/model_plan.h"
#include "tensor/dtype.h"

namespace gimbal {

// Adds all but what is free.
void add_taken(MemoryPlan& to, const MemoryPlan&);

// Bytes that the stages of a plan take of one memory.
struct MemoryUse {
  const Device* device;  // nullptr: the host
  MemoryPlan sum;        // of the stages there; on the host with its sessions
};
// One for every device, and a last one for the host: what the sessions hold, together with all that devices
// take that compute in its memory (the CPU, and those that are emulated or share it). Not counted: the file's
// header and the tokenizer, which are there before anybody asks what is free; and 2304 bytes on each GPU.
std::vector<MemoryUse> memory_uses(const ModelPlan&);

// Bytes that a plan takes of a device's memory; nullptr: of the host's. Of no plan: 0.
uint64_t taken(const ModelPlan*, const Device*);

// Bytes that a device has free for a model with these options; nullptr: that the host has. Not those that
// RunOptions::beside takes and RunOptions::promised says.
uint64_t free_for(const RunOptions&, const Device*);

bool fits(const ModelPlan&);

// OutOfMemory, with the numbers and what would help (fewer layers there, a smaller context, another format of
// the KV cache, another device), when the plan exceeds what a device or the host has free.
Status check_memory(const ModelSource& file, const ModelPlan&);

// The most layers, from the last one on, that fit on `device` together with the output head, when the
// embedding and the other layers are somewhere else. Errors: those of make_model_plan.
Result<int> layers_that_fit(const ModelSource& file, const Device& device, const RunOptions& options);

// The positions of context that would fit; 0 when not even a page of the cache does.
int64_t context_that_fits(const ModelPlan&);

// Formats that a model with heads of this size can keep its cache in.
DTypeSet cache_types(int head_dim);

}  // namespace gimbal
