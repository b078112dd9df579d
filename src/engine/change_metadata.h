// Settings of a model that take the place of its file's metadata.
#pragma once
#include <gimbal/settings.h>

#include "files/model_source.h"

namespace gimbal {

// The chat template (a text) and the settings of rotary positions, as if the file had these values. Errors:
// Usage, naming the setting, for those that would change nothing.
Status change_metadata(ModelSource&, const ModelOptions&);

}  // namespace gimbal
