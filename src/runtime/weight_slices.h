// The weights of a plan, read from a model's file and laid out for a device, in slices: threads share large
// matrices, progress is smooth, and the bytes are still in the thread's cache when they are packed.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "device/device.h"
#include "files/model_source.h"
#include "program/program.h"

namespace gimbal {

// Called from the calling thread with the bytes of weights read so far, and in all. Return false to cancel
// (Failed).
using WeightProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Rows of a weight; of a vector, its only one.
struct WeightSlice {
  size_t stage;  // of the plan
  uint16_t value;
  const StoredTensor* tensor;
  uint64_t source;     // byte of the tensor where the weight's first row is
  uint64_t row_bytes;  // in the file
  int64_t begin, end;  // rows

  uint64_t bytes() const { return row_bytes * uint64_t(end - begin); }  // in the file
};

// Adds all rows of the program's weight number `w`.
void add_slices(std::vector<WeightSlice>&, size_t stage, const Program&, size_t w, const TensorTable&);
// Adds the sample of a program that has packed weights (runtime/packed_weights.h).
void add_samples(std::vector<WeightSlice>&, size_t stage, const Program&, const TensorTable&);

// Reads a slice, and packs it into its place in the buffer: v.offset. `room`: memory of the thread, for the
// rows as they are in the file. Errors: those of reading, Unsupported formats, the device's.
Status place_weight(const Device&, Buffer&, const gimbal_value& v, const Shape&, const ModelSource&,
                    const WeightSlice&, std::vector<std::byte>& room);

// Calls `work` for each slice, from up to `threads` threads. Errors: the first one of `work`; Failed if
// `progress`, which may be empty, cancels it.
Status for_slices(std::span<const WeightSlice>, unsigned threads, const WeightProgress& progress,
                  const std::function<Status(const WeightSlice&, std::vector<std::byte>& room)>& work);

}  // namespace gimbal
