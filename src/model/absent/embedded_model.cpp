// without model: there is none inside the program.
#include "model/embedded_model.h"

namespace gimbal {

Bytes embedded_model() { return {}; }

}  // namespace gimbal
