// The drafter for a draft head (model/draft_head.h), or for a file's own layers for multi-token prediction.
#pragma once
#include "model/draft_head.h"
#include "runtime/drafter.h"
#include "runtime/model.h"

namespace gimbal {

// The options of the head's model that follow from the head.
void set_head_options(const DraftHead&, RunOptions&);

// `model`: made with ModelArch::nextn, or of the head with set_head_options(), and RunOptions::states;
// outlives the drafter, which takes a sequence of it. Errors: OutOfMemory if all sequences are taken.
Result<std::unique_ptr<Drafter>> make_head_drafter(Model& model, const DraftHead* head);

}  // namespace gimbal
