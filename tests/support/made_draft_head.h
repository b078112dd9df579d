// Draft heads with random weights, for any model.
#pragma once
#include <string>

#include "files/model_source.h"

namespace gimbal::test {

// The path of a head of EAGLE-3 or DFlash (`arch`) for the model, which takes the model's token table and
// output head, reads the inputs of the first three layers, or of the first one, and has the model's
// tokenizer. Fails the calling test when it cannot be written.
std::string made_draft_head(const ModelSource& model, const std::string& arch = "eagle3");

}  // namespace gimbal::test
