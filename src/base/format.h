// Text formatting for errors and reports: fmt behind one name, so that its templates are instantiated once.
#pragma once
#include <fmt/format.h>

namespace gimbal {
using fmt::format;
}
