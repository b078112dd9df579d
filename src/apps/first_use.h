// Verified before use: the first time that this build meets a device, the kernels that the model needs are
// checked there, and the first time that it meets a model, the model is tried out. What was found is kept;
// nothing of it is believed of another device, driver or build.
#pragma once
#include "apps/place_model.h"
#include "runtime/model.h"

namespace gimbal {

// plan_model(), without the kernels that give wrong numbers here: those are quarantined, said aloud, and the
// next ones take their place. A device that has none left is left out in the same way. Errors: those of
// plan_model; NoBackend under --strict in place of each of these.
Result<PlannedModel> plan_verified(ModelFile&& source, const EngineOptions& options, const RunOptions& run,
                                   bool quiet);

// The loaded model tried out: runtime/model_check.h. Errors: Failed, with the numbers, when it does not agree
// with itself.
Status try_out(Model& model, const ModelFile& source, const EngineOptions& options, bool quiet);

}  // namespace gimbal
