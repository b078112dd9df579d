// GGUF model files (versions 2 and 3). Everything in a file is hostile until checked; once a file is open,
// every tensor's bytes lay inside it and every accessor is total. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/file_bytes.h"
#include "files/model_source.h"

namespace gimbal {

// Opens a file and, when its metadata names it the first part of a split model (split.count > 1,
// NAME-00001-of-0000N.gguf), all the other parts beside it. Metadata and the table of tensors are read,
// weights are not. `choice`: how ternary weights lie, where the file does not tell (files/ternary_layout.h).
// `from`: where the files lie, if not in the file system. Errors: NotFound or Failed from the system, or
// those of `from`; Malformed with file, offset, expected and found; Unsupported.
Result<ModelSource> open_gguf(const std::string& path, const TernaryChoice& choice = {},
                              const RemoteFolder* from = nullptr);
// A file that is already in memory, which must outlive the result. `name` is used in errors. No split parts.
Result<ModelSource> parse_gguf(Bytes bytes, const std::string& name);

// The file names of split models: NAME-00001-of-0000N.gguf and its siblings.
struct SplitName {
  std::string stem;     // folder and NAME
  uint32_t number = 1;  // from 1, as in the file name
  uint32_t count = 1;

  std::string path(uint32_t part_number) const;  // of another part of the same model
};

// nullopt when the path does not end like a part of a split model.
std::optional<SplitName> split_name(std::string_view path);

}  // namespace gimbal
