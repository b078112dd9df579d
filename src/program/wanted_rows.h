// Most rows of a prompt only feed the KV cache: no logits are requested for them. This pass computes the ops
// after the last layer's attention for the requested rows only, which saves a fifth of a layer's work or
// more.
#pragma once
#include <optional>

#include "program/program.h"

namespace gimbal {

// Moves the program's select_rows towards its beginning: ops whose results are used in the selected rows only
// compute just these rows (GIMBAL_OUT_ROWS), and their inputs are selected instead. An op moves if it reads
// its inputs row by row and keeps no state; every computed row keeps its bits. Run it before plan_work().
// `failed`: as in Program::add().
void compute_wanted_rows_only(Program&, std::optional<Error>& failed);

}  // namespace gimbal
