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

// NumPy's archives of arrays: npy files in a zip archive.

// Opens an archive: its arrays by their names, without ".npy". Of each entry the header is unpacked and
// nothing more; the values are, as often as they are read, so read an array in one piece. Errors: those of
// read_zip_directory() and parse_npy_header(); Malformed for an entry that is no array.
Result<ModelSource> open_npz(const std::string& path);
Result<ModelSource> parse_npz(Bytes bytes, const std::string& name);

// Any file of arrays, by its first bytes: GGUF, safetensors, npy, npz. Errors: those of its reader.
Result<ModelSource> open_arrays(const std::string& path);

}  // namespace gimbal
