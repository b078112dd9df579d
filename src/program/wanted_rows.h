// Most rows of a prompt are computed for what later rows read of them: their keys and values. Nobody asks for
// their logits. So what the last layer does behind its attention is needed of the wanted rows only, which is
// a fifth of a layer's work or more.
#pragma once
#include <optional>

#include "program/program.h"

namespace gimbal {

// Moves the program's select_rows towards its beginning: ops whose results are read in the selected rows only
// compute these rows only (GIMBAL_OUT_ROWS), and their inputs are selected instead. An op moves if it reads
// its inputs row by row and keeps nothing; every row has the bits that it had. Before plan_work(). `failed`:
// as in Program::add().
void compute_wanted_rows_only(Program&, std::optional<Error>& failed);

}  // namespace gimbal
