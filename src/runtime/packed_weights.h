// Uses the weights of a packed file (files/packed_file.h) for a plan, and writes such files. A weight is
// identified by everything that determines its bytes, except the values: the rows, tensor and format, and the
// device's layout and size. So a file serves every plan whose weights it contains, at any offset. To detect a
// changed layout of the device, loading packs the first rows of some weights again and compares them.
#pragma once
#include <memory>
#include <string>

#include "base/prefault.h"
#include "files/packed_file.h"
#include "runtime/model.h"

namespace gimbal {

// `tensors`: those that the plan was made from. The stage then reads its weights in place from the mapped
// file (Stage::packed). Errors, which change nothing: Unsupported if the device cannot do this, or has other
// weights; `packed-unusable` if the file lacks a weight or has another device's layout. Those
// of plan_disk_experts(), after which the plan is of no use.
Status use_packed(ModelPlan&, size_t stage, const TensorTable& tensors, std::shared_ptr<const PackedFile>);

// Starts to bring the mapped weights of a plan into memory: those that every step reads as a whole. Left out
// are tables whose rows are looked up, and experts; a step reads few of these. The plan outlives the result
// and fits (memory_check.h). Null: nothing is mapped. `populate`: tests replace it.
std::unique_ptr<Prefault> prefault(const ModelPlan&, Prefault::Populate populate = Prefault::populate);
// Whether the pages that it wanted can be read. Errors: those of PackedFile::unchanged(), and
// `packed-unusable`.
Status check_readable(const ModelPlan&, const Prefault::Report&);

// Writes the file atomically, one weight after the other, in the memory of the largest one.
// `source`: the file that the plan was made from. `progress` may be empty. Errors: Unsupported if the model
// is split over devices, has adapters, or its device cannot use such a file; those of reading; the system's;
// Failed if `progress` cancels it.
Status write_packed(const std::string& path, const ModelPlan&, const ModelSource& source,
                    const WeightProgress& progress);

// The sample that loading compares: the first rows of every n-th weight of a program, and of one weight per
// format; some megabytes in all.
inline constexpr int64_t kSampleRows = 16;
size_t sample_distance(const Program&);
uint64_t sample_bytes(const gimbal_value& weight, int64_t rows);

}  // namespace gimbal
