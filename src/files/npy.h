// NumPy's files of one array: a magic number, a version, the header as a literal of Python, the values. The
// literal is read as data; nothing of it is evaluated. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "files/model_source.h"
#include "files/safetensors.h"

namespace gimbal {

// The header of an array: format, rank and dims of `array` (dim[0] is the fastest-varying), and its size in
// `bytes`.
struct NpyHeader {
  StoredTensor array{};
  uint64_t begin = 0;  // of the values, from the file's start
};
constexpr uint64_t kMaxNpyHeader = 1 << 16;  // bytes; more than 32 dims take
// The bytes that the header takes, from the first kNpyStart bytes. Errors: Malformed; Unsupported (version).
constexpr uint64_t kNpyStart = 12;
Result<uint64_t> npy_header_bytes(Bytes start, const std::string& name);
// `head`: all of the header. `name` is used in errors. Errors: Malformed; Unsupported for values that are no
// numbers of the machine's byte order, objects above all.
Result<NpyHeader> parse_npy_header(Bytes head, const std::string& name);

// Opens a file: one tensor without a name. What follows its values is not read. Errors: those above; NotFound
// or Failed from the system; Malformed if the values end early.
Result<ModelSource> open_npy(const std::string& path);
Result<ModelSource> parse_npy(Bytes bytes, const std::string& name);

// Writes such a file, whole or not at all. `dims`: dims[0] varies slowest. `read` gives the bytes. Errors:
// Unsupported for a format that such files cannot have; those of `read`; the system's.
Status write_npy(const std::string& path, DType type, std::span<const int64_t> dims, const ReadTensor& read);

}  // namespace gimbal
