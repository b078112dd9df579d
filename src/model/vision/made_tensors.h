// A reader that adds tensors made in memory to those of a file: transposed, permuted or summed when a
// projector file is opened, so that everything behind it reads weights of one form.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "files/model_source.h"

namespace gimbal {

class MadeTensors final : public TensorReader {
 public:
  explicit MadeTensors(const ModelSource& of) : of_(of) {}

  // A tensor of the file, under another name.
  void add(const StoredTensor& tensor, std::string name);
  // A matrix [columns, rows] with these values.
  void add(std::string name, int64_t columns, int64_t rows, std::vector<float> values);
  // Keeps a text for views of metadata.
  std::string_view keep(std::string text) { return names_.emplace_back(std::move(text)); }
  // The table, by its order. False for a name that is there twice.
  bool complete() const { return complete_; }
  const TensorTable& tensors() const { return tensors_; }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override;
  uint64_t file_bytes() const override { return of_.file_bytes(); }
  FileIdentity identity() const override { return of_.reader().identity(); }
  bool is(const std::string& path) const override { return of_.is(path); }

 private:
  struct Origin {
    uint32_t index;             // in the file
    std::vector<float> values;  // in place of the file's; empty: none
  };

  const ModelSource of_;  // a copy keeps the file's reader
  std::deque<std::string> names_;
  std::vector<Origin> origins_;  // by index in tensors_
  TensorTable tensors_;
  bool complete_ = true;
};

// The values of a tensor of plain or quantized numbers. Errors: Unsupported for a format without values;
// Malformed for more than `most`; those of reading.
Result<std::vector<float>> values_of(const ModelSource&, const StoredTensor&, int64_t most);

}  // namespace gimbal
