// A plan and free memory: whether it fits its devices and the host, what would fit, and how large a KV cache
// sequences can share.
#pragma once
#include <vector>

#include "runtime/model_plan.h"
#include "tensor/dtype.h"

namespace gimbal {

// Adds all members except `free`.
void add_taken(MemoryPlan& to, const MemoryPlan&);

// Bytes that the stages of a plan take of one memory.
struct MemoryUse {
  const Device* device;  // nullptr: the host
  MemoryPlan sum;        // of the stages there; on the host with its sessions
};
// One per device, and a last one for the host: the memory of the sessions, and of all devices that compute
// in host memory (the CPU, emulated devices, and devices that share it). Not counted: the file's header and
// the tokenizer, allocated before free memory is read; and 2304 bytes on each GPU.
std::vector<MemoryUse> memory_uses(const ModelPlan&);

// Bytes of a device's memory that a plan takes; device nullptr: the host's memory. Without a plan: 0.
uint64_t taken(const ModelPlan*, const Device*);

// Bytes of a device that are free for a model with these options; nullptr: of the host. Excludes
// RunOptions::beside and RunOptions::promised.
uint64_t free_for(const RunOptions&, const Device*);

bool fits(const ModelPlan&);

// OutOfMemory, with the numbers and a remedy (fewer layers there, a smaller context, another format of the KV
// cache, another device), if the plan exceeds the free memory of a device or of the host.
Status check_memory(const ModelSource& file, const ModelPlan&);

// The most layers, from the last one on, that fit on `device` together with the output head, when the
// embedding and the other layers are somewhere else. Errors: those of make_model_plan.
Result<int> layers_that_fit(const ModelSource& file, const Device& device, const RunOptions& options);

// The largest context that would fit, in positions; 0 if not even one page of the cache fits.
int64_t context_that_fits(const ModelPlan&);

// The same, at most the context that the model was trained on.
int64_t largest_context(const ModelPlan&);

// The KV cache formats of a model with heads of this size.
DTypeSet cache_types(int head_dim);

// ---- the size of the KV cache that the sequences of a model share
struct CacheBudget {
  int64_t most = 0;    // positions that can be used; 0: keep the plan's own
  int64_t modest = 0;  // positions that may also use the memory to be left free
  int models = 1;      // models that share the devices
  int together = 1;    // processes that see the same memory free now, and take it at once
};

// Positions in the plan's shared cache pages that keep whole texts; 0: there are none.
int64_t cache_positions(const ModelPlan&);

// The plan, made from `file`, with more positions of cache (RunOptions::cache_positions), never fewer: the
// requested number, as far as it fits its devices. Leaves free a sixteenth of a device's memory, and space
// for the weights again, which the same model needs to compute embeddings, too; on the host half of the
// memory, for other programs. Errors: those of make_model_plan.
Result<ModelPlan> with_larger_cache(const ModelSource& file, ModelPlan plan, const CacheBudget&);

}  // namespace gimbal
