// The answer to options that only other builds of gimbal have. Knows no names of other backends; the
// option's own name identifies the build.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"

namespace gimbal::worker {

inline std::string program_name(const std::string& backend) { return "gimbal-worker-" + backend; }

// Usage, naming the build that takes `option`; nullopt if no such build is known, or if it is more likely a
// misspelt option of this one.
std::optional<Error> option_of_another_build(const std::string& option, const std::string& backend,
                                             bool has_gpus);

}  // namespace gimbal::worker
