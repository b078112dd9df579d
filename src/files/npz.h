// NumPy's archives of arrays: npy files in a zip archive.
#pragma once
#include <string>

#include "files/model_source.h"

namespace gimbal {

// Opens an archive: its arrays by their names, without ".npy". Of each entry the header is unpacked and
// nothing more; the values are, as often as they are read, so read an array in one piece. Errors: those of
// read_zip_directory() and parse_npy_header(); Malformed for an entry that is no array.
Result<ModelSource> open_npz(const std::string& path);
Result<ModelSource> parse_npz(Bytes bytes, const std::string& name);

// Any file of arrays, by its first bytes: GGUF, safetensors, npy, npz. Errors: those of its reader.
Result<ModelSource> open_arrays(const std::string& path);

}  // namespace gimbal
