// What `gimbal crossval` prints, and its exit code.
#pragma once
#include "base/json_fwd.h"
#include "crossval/crossval.h"

namespace gimbal {

// 0 the same or within rounding, 1 different, 3 cannot compare.
int exit_code(crossval::Verdict);
// `layers`: a line for each layer.
std::string crossval_text(const crossval::CrossvalReport&, bool layers);
Json crossval_json(const crossval::CrossvalReport&);

}  // namespace gimbal
