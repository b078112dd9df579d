// Encodes the tensors of a model one after the other, a window of rows at a time, on several threads. The
// bytes do not depend on windows or threads.
#pragma once
#include <functional>
#include <vector>

#include "files/model_source.h"
#include "quantize/importance.h"
#include "quantize/mixture.h"

namespace gimbal {

// Encodes rows of a tensor, from several threads.
class RowEncoder {
 public:
  // As TensorEncoder.
  RowEncoder(const ModelSource& source, const std::vector<TensorFormat>& formats,
             const Importance* importance)
      : source_(source), formats_(formats), importance_(importance) {}

  // The factor of all values of a tensor; 1 if its format has none. Errors: those of reading.
  Result<float> scale_of(const StoredTensor&) const;
  struct Room {  // memory of a thread
    std::vector<std::byte> stored;
    std::vector<float> values;
  };
  // `count` rows of all matrices together. Errors: those of reading; Malformed for weights that are not
  // finite.
  Status encode(const StoredTensor&, float scale, int64_t first, int64_t count, Room&, uint8_t* out) const;

 private:
  const ModelSource& source_;
  const std::vector<TensorFormat>& formats_;
  const Importance* importance_;
};

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
  // In place of read(): the caller has these bytes. Errors: Failed after `progress` returned false.
  Status skip(const StoredTensor&, uint64_t offset, size_t bytes);

 private:
  void reached(const StoredTensor&, uint64_t values);
  Status check_stopped() const;
  Status encode_window(const StoredTensor&, int64_t first_row);

  const ModelSource& source_;
  const std::vector<TensorFormat>& formats_;
  RowEncoder rows_;
  int threads_;
  std::function<bool(uint64_t)> progress_;
  const StoredTensor* counted_ = nullptr;  // the tensor in work, and the values of those before it
  uint64_t before_ = 0;
  bool stopped_ = false;
  // The rows in memory.
  const StoredTensor* tensor_ = nullptr;
  int64_t first_row_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace gimbal
