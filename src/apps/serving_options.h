// The options of an engine that serves many at once, which `gimbal serve` hands on to its workers.
#pragma once
#include "apps/options.h"
#include "server/local_model.h"

namespace gimbal {

struct LoadOptions {
  std::optional<int> parallel, queue;
  std::optional<int64_t> cache_tokens;
  std::optional<std::string> draft;
};

inline constexpr const char* kLoadSection = "Load";
void declare(Arguments&, LoadOptions&);

// Errors: those of engine_options().
Result<ServingOptions> serving_options(const LoadOptions&, const CommonOptions&);

}  // namespace gimbal
