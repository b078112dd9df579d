// Draft heads: small models in files of their own that read the states of another model, their target, and
// guess its next tokens (runtime/nextn_drafter.h, runtime/block_drafter.h). EAGLE-3's read the inputs of
// three layers, DFlash's of several; one that lacks the table of tokens or the output head takes the
// target's. Gemma 4's assistants read the target's result and attend to its keys and values.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/model_source.h"
#include "model/arch.h"
#include "model/markov_head.h"

namespace gimbal {

struct DraftHead {
  const ModelArch* arch;
  // Of the target, by number from 0: the head reads their inputs. The number behind the last one: the result.
  std::vector<int> layers;
  std::vector<int32_t>
      tokens;  // the token of each logit, of a head with fewer logits; empty: the same number
  // All guesses of a draft are made from one position, each from the last part of the states: the target's
  // result, then the head's own one.
  bool stays = false;
  // Of a head that guesses a block in one step: its rows, the text's last token and masks; 0: one guess a
  // step.
  int block = 0;
  int32_t mask = 0;  // its token
  // Of DSpark: changes each row's logits by the guess before it.
  std::shared_ptr<const MarkovHead> markov = {};
  bool from_first = false;  // the first row, of the text's last token, gives a guess, too
};

// The names of tensors of the target in the file of a head of Gemma 4.
inline constexpr const char *kTarget = "target.", *kTargetWindow = "target.window.",
                            *kTargetAll = "target.all.";

// nullopt: the file is no draft head. Its Markov head is opened by fit_draft_head(). Errors: Malformed keys
// or tensors.
Result<std::optional<DraftHead>> read_draft_head(const ModelSource& file);

// Checks that the head reads such a model, and adds to `file` the tensors that the head takes from it. Sets
// the layers of a head that does not name them. Errors: Usage for a model of another architecture or width,
// with fewer layers, or with fewer tokens than the head names; Malformed when a tensor is in neither file.
Status fit_draft_head(DraftHead&, ModelSource& file, const ModelSource& target);

}  // namespace gimbal
