// config.json as metadata under GGUF's keys.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "huggingface/families.h"
#include "huggingface/metadata_builder.h"
#include "huggingface/model_config.h"

namespace gimbal {

// The facts that the conversion of tensors needs, too.
struct ModelShape {
  int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0, rotated = 0, vocabulary = 0;
  bool tied = false;  // the output is the table of embeddings, even if the files have both
  std::map<std::string, std::vector<float>>
      made;  // tensors that follow from the config: factors of the rotation
};

// Adds the keys. Errors: Malformed, with file, name, expected and found; Unsupported.
Result<ModelShape> add_config(ModelConfig&, const Family&, MetadataBuilder& out);

}  // namespace gimbal
