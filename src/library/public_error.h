// The public form of the library's errors, for layers that need nothing else of it. The library's own headers
// come first: library/internal.h.
#pragma once
#include "base/result.h"

#include <gimbal/error.h>

namespace gimbal::v1 {
Error to_public(const gimbal::Error&);
}
