// The options of an engine that serves several requests at once.
#pragma once
#include <optional>

#include "apps/toolkit/arguments.h"
#include "runtime/model_plan.h"

namespace gimbal {

struct SharingOptions {
  std::optional<int> parallel, queue;
  std::optional<int64_t> cache_tokens;
};

inline constexpr const char* kLoadSection = "Load";
void declare(Arguments&, SharingOptions&);

// Reports on stderr how much KV cache the texts share, and its memory.
void print_cache_size(const ModelPlan&);

}  // namespace gimbal
