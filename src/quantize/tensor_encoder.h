// Encodes the tensors of a model one after the other, a window of rows at a time, on several threads. The
// bytes do not depend on windows or threads.
#pragma once
#include <functional>
#include <vector>

#include "files/model_source.h"
#include "quantize/importance.h"
#include "quantize/mixture.h"

namespace gimbal {

class TensorEncoder {
 public:
  // Everything must outlive the encoder. `importance` may be null. `progress`: values done so far; false ends
  // the work.
  TensorEncoder(const ModelSource& source, const std::vector<TensorFormat>& formats,
                const Importance* importance, int threads, std::function<bool(uint64_t done)> progress);

  // Bytes [offset, offset + bytes) of the encoded tensor: the next ones of the tensor that was read last, or
  // the first ones of a later tensor. Errors: those of reading; Malformed for weights that are not finite;
  // Failed after `progress` returned false.
  Status read(const StoredTensor&, uint64_t offset, void* to, size_t bytes);

 private:
  Status encode_window(const StoredTensor&, int64_t first_row);
  Status encode_rows(const StoredTensor&, int64_t first, int64_t count, std::vector<std::byte>& stored,
                     std::vector<float>& values, uint8_t* out) const;

  const ModelSource& source_;
  const std::vector<TensorFormat>& formats_;
  const Importance* importance_;
  int threads_;
  std::function<bool(uint64_t)> progress_;
  uint64_t done_ = 0;
  // The rows in memory.
  const StoredTensor* tensor_ = nullptr;
  int64_t first_row_ = 0;
  std::vector<uint8_t> window_;
  float tensor_scale_ = 1;
};

}  // namespace gimbal
