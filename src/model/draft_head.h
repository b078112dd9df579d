// Draft heads: small models in files of their own that read the states of another model, their target, and
// guess its next tokens (runtime/nextn_drafter.h). If a head lacks the table of tokens or the output head, it
// takes the target's.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "files/model_source.h"
#include "model/arch.h"

namespace gimbal {

struct DraftHead {
  const ModelArch* arch;
  std::vector<int> layers;  // of the target, by number from 0: the head reads their inputs
  std::vector<int32_t>
      tokens;  // the token of each logit, of a head with fewer logits; empty: the same number
};

// nullopt: the file is no draft head. Errors: Malformed keys or tensors.
Result<std::optional<DraftHead>> read_draft_head(const ModelSource& file);

// Checks that the head reads such a model, and adds to `file` the tensors that the head takes from it.
// Errors: Usage for a model of another width, with fewer layers, or with fewer tokens than the head names;
// Malformed when a tensor is in neither file.
Status fit_draft_head(const DraftHead&, ModelSource& file, const ModelSource& target);

}  // namespace gimbal
