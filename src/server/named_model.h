// A loaded model under another name, with the preset of that name. The weights are shared.
#pragma once
#include "server/model.h"
#include "server/model_preset.h"

namespace gimbal {

// `preset` may be nullptr. Errors: those of Template::parse().
Result<ServedModelPtr> named_model(ServedModelPtr base, std::string id,
                                   std::shared_ptr<const ModelPreset> preset);

}  // namespace gimbal
