// Whole models on a GPU backend: the same bits as on the CPU, for any batch and split of the prompt, with the
// matrices whole or in parts, with LoRA adapters; the reference data's greedy tokens; the story. Each check
// is a function of the backend and its options. With fewer_cases(): models that use what no model before them
// does, one story, and each setting and cache with one model.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/adapters.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {

struct ModelSetting {
  std::string backend, options;
  DType cache = DType::F16;
  int batch = 32, split = 0;
  std::vector<Lora> lora = {};
};

std::vector<int32_t> some_tokens(int n);
Result<Engine> open_model(const std::string& path, const ModelSetting& s);
std::vector<float> logits_of(const std::string& path, const ModelSetting& s,
                             const std::vector<int32_t>& tokens);

// The models that check_bits_of_the_cpu() runs. A model has a new use if it calls a kernel with parameters
// that no model before it had.
enum class Which {
  All,
  AllButFurther,  // of the folder more/arch, only models with a new use
  NewUses,        // of every folder, only models with a new use
  FewNewUses,     // as NewUses, without the folder more/arch
};
void check_bits_of_the_cpu(const ModelSetting& gpu, Which which = Which::AllButFurther);
// An adapter's products are the device's own, and no weight is changed.
void check_lora(ModelSetting gpu);
void check_every_cache(ModelSetting gpu);
// `more`: options, with the batches and splits that they are tried with, besides those of every backend.
void check_batches_and_splits(const ModelSetting& gpu, const std::vector<ModelSetting>& more = {});
// Continues the stories of the reference data token by token and compares each token. `only`: the file name
// of one model; empty: all models.
void check_continuations(ModelSetting gpu, const std::string& only = "");
// The tokens drawn from the logits that the device found to lead are those drawn from all of them.
void check_sampling(const ModelSetting& gpu);
void check_story(const ModelSetting& gpu);
// One device, and four threads that each load and run a model on it.
void check_threads(const ModelSetting& gpu);

}  // namespace gimbal::test
