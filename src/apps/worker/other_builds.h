// What a worker answers to options that only other builds of gimbal have. It knows no names of other
// backends: the option itself tells.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"

namespace gimbal::worker {

inline std::string program_name(const std::string& backend) { return "gimbal-worker-" + backend; }

// Usage, naming the build that takes `option`; nothing when no build is known to take it, or when it is
// rather a misspelt option of this one.
std::optional<Error> option_of_another_build(const std::string& option, const std::string& backend,
                                             bool has_gpus);

}  // namespace gimbal::worker
