// Commands of features that this build lacks (cmake/features.cmake).
#pragma once
#include "apps/commands/command.h"

namespace gimbal {

// A command without options. `feature`: one of GIMBAL_FEATURES.
std::unique_ptr<Command> absent_command(const char* feature);

}  // namespace gimbal
