// Weights of a plan that come out of a packed file (files/packed_file.h), and how such a file is written. A
// weight is found by all that decides its bytes but the weights themselves: which rows of which tensor in
// which format, and the layout and size that the device wants. So a file serves every plan whose weights it
// has, wherever they lie in it. That the device still lays them out so is seen from the first rows of them,
// which loading lays out once more and compares.
#pragma once
#include <memory>
#include <string>

#include "files/packed_file.h"
#include "runtime/model.h"

namespace gimbal {

// `tensors`: those that the plan was made of. The stage's weights are read where they lie in the file; its
// plan says so (Stage::packed). Errors, after which nothing has changed: Unsupported where the device cannot,
// or has other weights; `packed-unusable` where the file lacks a weight or is of another device's layout.
Status use_packed(ModelPlan&, size_t stage, const TensorTable& tensors, std::shared_ptr<const PackedFile>);

// Replaces or makes the file: whole or not at all. `source`: what the model was loaded from. Errors:
// Unsupported where a model lies on several devices, has adapters, or its device cannot use such a file; the
// system's.
Status write_packed(const std::string& path, const Model&, const ModelSource& source);

// Of every so many-th weight of a program the first rows are compared, and of every format: some megabytes in
// all.
inline constexpr int64_t kSampleRows = 16;
size_t sample_distance(const Program&);
uint64_t sample_bytes(const gimbal_value& weight, int64_t rows);

}  // namespace gimbal
