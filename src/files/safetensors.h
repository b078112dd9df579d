// Safetensors files: eight bytes with the size of the header, the header in JSON, and the bytes of the
// tensors without a gap. Everything in a file is hostile until checked. Format:
// https://github.com/huggingface/safetensors
#pragma once
#include <functional>
#include <map>
#include <string>

#include "files/model_source.h"
#include "files/plain_reader.h"

namespace gimbal {

// Opens one file: its texts ("__metadata__") and its tensors, in the order of their bytes. Errors: NotFound
// or Failed from the system; Malformed; Unsupported for a format of numbers that this build does not know, or
// more than 8 dims.
Result<ModelSource> open_safetensors(const std::string& path);
// A file that is already in memory, which must outlive the result. `name` is used in errors.
Result<ModelSource> parse_safetensors(Bytes bytes, const std::string& name);

// Adds the tensors of a file of `reader` to the table, as those of part `part`, and its texts to `texts`
// unless null. `name` is used in errors. Errors: as above; Malformed for a name that the table has already.
Status add_safetensors(PlainReader& reader, FileBytes& file, const std::string& name, uint32_t part,
                       TensorTable& tensors, Metadata* texts);

// Writes such a file, whole or not at all: formats, dims and names of `tensors`, whose bytes `read` gives by
// index, piece by piece. Wide numbers come first, so that all are aligned. Equal calls give equal bytes.
// Errors: Unsupported for a format that such files cannot have; those of `read`; the system's.
using ReadTensor = std::function<Status(size_t tensor, uint64_t offset, void* to, size_t bytes)>;
Status write_safetensors(const std::string& path, const TensorTable& tensors,
                         const std::map<std::string, std::string>& texts, const ReadTensor& read);

}  // namespace gimbal
