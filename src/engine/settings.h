// Converts the settings of a program or a command line to the options of the engine.
#pragma once
#include "engine/find_model.h"
#include "engine/options.h"

namespace gimbal {

// Errors: Usage (out-of-range), naming the first setting outside its range in settings_table.h.
Result<EngineOptions> engine_options(const DeviceSettings&, const ModelOptions&);
ModelFileOptions file_options(const ModelOptions&);

}  // namespace gimbal
