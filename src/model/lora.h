// Low-rank adapters: W x becomes W x + s B (A x), computed with the model, never merged into its weights.
// Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021. In GGUF an adapter is a file of
// its own with tensors `<weight>.lora_a` [columns, rank] and `<weight>.lora_b` [rank, rows].
#pragma once
#include <string>

#include "files/model_source.h"

namespace gimbal {

struct Lora {
  std::string path;
  float scale = 1;  // times adapter.lora.alpha / rank, if the file has an alpha
};

// Joins the adapter to the model's file; the model is then recorded with it (Recorder::product). Errors:
// those of open_gguf; Usage when the file is no LoRA adapter, or one for another architecture; Malformed
// when a tensor has no weight in the model.
Status add_lora(ModelSource& model, const Lora&);

}  // namespace gimbal
