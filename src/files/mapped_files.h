// Mappings of the files that tensors lie in, made as they are needed.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "files/file_bytes.h"
#include "files/tensor_table.h"

namespace gimbal {

// Thread-safe. `name` is that of the source, for errors.
class MappedFiles {
 public:
  // As TensorReader::map, of a tensor that lies in `files` as it is read.
  Result<Bytes> map(const std::string& name, const std::deque<FileBytes>& files, const StoredTensor&);
  // As TensorReader::mappings_whole.
  Status whole(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, GuardedMapping> mappings_;  // by part
};

}  // namespace gimbal
