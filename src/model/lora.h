// Low-rank adapters: W x becomes W x + s B (A x), computed with the model, never merged into its weights.
// Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021. In GGUF an adapter is a file of
// its own with tensors `<weight>.lora_a` [columns, rank] and `<weight>.lora_b` [rank, rows].
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/model_source.h"

namespace gimbal {

inline constexpr size_t kMaxAdapters = 16;  // of one model

struct Lora {
  std::string path;
  float scale = 1;  // of texts that name none; times adapter.lora.alpha / rank, if the file has an alpha
};

// Some of a model's adapters. Bit i: the i-th of TensorTable::adapters().
using AdapterSet = uint32_t;
// Those with a scale other than 0, which means: not applied. `scales`: by adapter.
AdapterSet applied(std::span<const float> scales);
// The scales of texts that name none, by adapter.
std::vector<float> scales_at_start(const TensorTable&);

// Joins the adapter to the model's file; the model is then recorded with it (Recorder::product). Errors:
// those of open_gguf; Usage when the file is no LoRA adapter, or one for another architecture, or there are
// kMaxAdapters; Unsupported for one that begins to act later (aLoRA); Malformed when a tensor has no weight
// in the model.
Status add_lora(ModelSource& model, const Lora&);

}  // namespace gimbal
