// Reads the bytes of tensors, wherever they lie: in the files of a model or of arrays, or in several models
// joined.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// Tells one state of a model's files from another without reading weights.
struct FileIdentity {
  uint64_t bytes, headers;  // of all files; a hash of their headers and sizes
  int64_t modified;         // nanoseconds since 1970, of the file that was written last
  bool operator==(const FileIdentity&) const = default;
};

class TensorReader {
 public:
  virtual ~TensorReader() = default;
  // Bytes [offset, offset + bytes) of the tensor with this index in the model's TensorTable, into memory of
  // the caller's. Callable from several threads. Errors: Failed for bytes outside the tensor, or from the
  // system; Malformed when the file has become shorter.
  virtual Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const = 0;
  // The same bytes, in a mapping of their file that lives as long as the reader. They begin at any address,
  // not only at a multiple of their size. Errors: Unsupported if the bytes do not lie in a file as they are
  // read; those of GuardedMapping::map.
  virtual Result<Bytes> map(size_t tensor) const;
  // Whether every page that was read in a mapping was there: one that was missing is read as zeros. Errors:
  // Malformed.
  virtual Status mappings_whole() const { return Done{}; }
  virtual uint64_t file_bytes() const = 0;  // of all files together
  virtual FileIdentity identity() const = 0;
  // Whether the path names one of the files, under whatever name.
  virtual bool is(const std::string& path) const = 0;
};

}  // namespace gimbal
