// The tensors of a folder under GGUF's names, each with the recipe that makes it.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "huggingface/families.h"
#include "huggingface/recipe.h"

namespace gimbal {

struct NamedTensors {
  TensorTable tensors;  // in the order of a file: those outside of layers first
  std::vector<Recipe> recipes;
  std::vector<std::string> left_out;  // names that this family drops: of images, say
};

// `names` keeps the memory of the new names. `folder` is used in errors: escaped. Errors: Unsupported for a
// tensor that the family does not have, or a format that is not computed; Malformed for experts that are not
// all there or not alike.
Result<NamedTensors> name_tensors(const TensorTable& stored, const Family&, const ModelShape&,
                                  const ModelConfig&, const std::string& folder,
                                  std::deque<std::string>& names);

}  // namespace gimbal
