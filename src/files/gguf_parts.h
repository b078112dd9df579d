// The parts of a model that is written in several files: their writers and their names.
#pragma once
#include <string>
#include <vector>

#include "files/gguf_writer.h"

namespace gimbal {

// One writer for each part. With more than one, each has the keys that say so; `tensors`: of all parts
// together.
std::vector<GgufWriter> writers_of_parts(size_t parts, size_t tensors);

// `path` for one part, else NAME-00001-of-0000N.gguf of it and its siblings.
std::vector<std::string> paths_of_parts(const std::string& path, size_t parts);

}  // namespace gimbal
