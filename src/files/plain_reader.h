// Reads tensors that lie in their files as their readers get them: of safetensors and npy files.
#pragma once
#include <deque>
#include <string>
#include <string_view>

#include "files/file_bytes.h"
#include "files/mapped_files.h"
#include "files/tensor_reader.h"
#include "files/tensor_table.h"

namespace gimbal {

class PlainReader final : public TensorReader {
 public:
  // `name` is used in errors: escaped (base/text.h).
  explicit PlainReader(std::string name) : name_(std::move(name)) {}

  // One more file. It stays where it is, and so does its header.
  FileBytes& add(FileBytes file) { return files_.emplace_back(std::move(file)); }
  // Keeps a text for the views of metadata and tensor table.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  // The tensors of all files. Before the first read().
  void serve(const TensorTable& tensors) { tensors_ = tensors; }
  const FileBytes& file(uint32_t part) const { return files_[part]; }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override;
  Result<Bytes> map(size_t tensor) const override;
  Status mappings_whole() const override { return mapped_.whole(name_); }
  uint64_t file_bytes() const override;
  FileIdentity identity() const override;
  bool is(const std::string& path) const override;

 private:
  std::string name_;
  std::deque<FileBytes> files_;  // one per part
  std::deque<std::string> texts_;
  TensorTable tensors_;
  mutable MappedFiles mapped_;
};

// The identity of several files, of which only headers are in memory.
FileIdentity identity_of(const std::deque<FileBytes>&);
// Checks a request to a reader. `name` is that of the source. Errors: Failed.
Status check_inside(const std::string& name, const TensorTable&, size_t tensor, uint64_t offset,
                    uint64_t bytes);

}  // namespace gimbal
