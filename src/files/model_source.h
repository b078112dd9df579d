// The source of a model: its metadata, its table of tensors, and the reader of their bytes. Code that needs
// only one of them takes only that one.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/metadata.h"
#include "files/tensor_reader.h"
#include "files/tensor_table.h"

namespace gimbal {

struct FileFormat {
  const char* name;
  uint32_t version;
};

class ModelSource {
 public:
  // Keys, names and strings are views into memory of the reader's. Copies share the reader.
  ModelSource(FileFormat format, Metadata metadata, TensorTable tensors,
              std::shared_ptr<const TensorReader> reader)
      : format_(format),
        metadata_(std::move(metadata)),
        tensors_(std::move(tensors)),
        reader_(std::move(reader)) {}

  FileFormat file_format() const { return format_; }
  const Metadata& metadata() const { return metadata_; }
  const TensorTable& tensors() const { return tensors_; }
  const TensorReader& reader() const { return *reader_; }
  uint64_t file_bytes() const { return reader_->file_bytes(); }
  bool is(const std::string& path) const { return reader_->is(path); }  // as TensorReader::is
  const std::string& path() const { return metadata_.source(); }        // for messages: escaped (base/text.h)

  // As TensorReader::read. `tensor` is one of tensors().
  Status read(const StoredTensor& tensor, uint64_t offset, void* to, size_t bytes) const {
    return reader_->read(tensor.index, offset, to, bytes);
  }
  // All of a tensor, for small ones.
  Result<std::vector<std::byte>> read(const StoredTensor&) const;

  // Adds the tensors of another source, under names with the adapter's suffix; its metadata is dropped.
  // Errors: Malformed for a duplicate name.
  Status join(const ModelSource& other, const Adapter& as);
  // Adds one tensor of another source under this name. False: the other one lacks it, or the name is taken.
  bool borrow(const ModelSource& other, std::string_view tensor, std::string name);

  // Takes the place of the file's value of this key.
  void set(const std::string& key, std::string_view text);
  void set(const std::string& key, double number);
  const std::vector<std::string>& changed() const { return changed_; }  // the keys that were set

 private:
  FileFormat format_;
  Metadata metadata_;
  TensorTable tensors_;
  std::shared_ptr<const TensorReader> reader_;
  std::vector<std::string> changed_;
  std::vector<std::shared_ptr<const std::string>> texts_;  // that the metadata points into
};

// `general.file_type` of the file (the numbers of GGUF's specification) if the file has tensors of that
// format, else the format of most bytes. In capitals; empty if the file has no tensors.
std::string quantization_of(const ModelSource&);

}  // namespace gimbal
