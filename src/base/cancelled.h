// The error of an operation that its caller ended.
#pragma once
#include "base/result.h"

namespace gimbal {

namespace reason {
inline constexpr const char* kCancelled = "cancelled";
}

inline Error cancelled() { return {Code::Failed, "interrupted", "", reason::kCancelled}; }

}  // namespace gimbal
