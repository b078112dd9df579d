// Reads the tensors of a GGUF model out of its files.
#pragma once
#include <deque>
#include <string>

#include "files/file_bytes.h"
#include "files/mapped_files.h"
#include "files/tensor_reader.h"
#include "files/tensor_table.h"

namespace gimbal {

class GgufReader final : public TensorReader {
 public:
  // `name` is used in errors: escaped (base/text.h).
  GgufReader(std::string name, const TernaryChoice& choice) : name_(std::move(name)), choice_(choice) {}

  // One more file. It stays where it is, and so does its header.
  FileBytes& add(FileBytes file) { return files_.emplace_back(std::move(file)); }
  // The tensors of all files. Before the first read().
  void serve(const TensorTable& tensors) { tensors_ = tensors; }
  const TernaryChoice& choice() const { return choice_; }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override;
  Result<Bytes> map(size_t tensor) const override;
  Status mappings_whole() const override { return mapped_.whole(name_); }
  uint64_t file_bytes() const override;
  FileIdentity identity() const override;
  bool is(const std::string& path) const override;

 private:
  Status read_relaid(const StoredTensor&, uint64_t offset, std::byte* to, size_t bytes) const;

  std::string name_;
  TernaryChoice choice_;
  std::deque<FileBytes> files_;  // one per part
  TensorTable tensors_;
  mutable MappedFiles mapped_;
};

}  // namespace gimbal
