#include "files/gguf_parts.h"

#include "files/gguf_split.h"

namespace gimbal {

std::vector<GgufWriter> writers_of_parts(size_t parts, size_t tensors) {
  std::vector<GgufWriter> all(parts);
  if (parts > 1)
    for (size_t i = 0; i < parts; i++) {
      all[i].add("split.no", {MetadataType::U16, uint64_t(i)});
      all[i].add("split.count", {MetadataType::U16, uint64_t(parts)});
      all[i].i32("split.tensors.count", int32_t(tensors));
    }
  return all;
}

std::vector<std::string> paths_of_parts(const std::string& path, size_t parts) {
  if (parts == 1) return {path};
  SplitName name;
  if (const auto given = split_name(path)) name.stem = given->stem;
  else name.stem = path.ends_with(".gguf") ? path.substr(0, path.size() - 5) : path;
  name.count = uint32_t(parts);
  std::vector<std::string> all;
  for (uint32_t i = 1; i <= parts; i++) all.push_back(name.path(i));
  return all;
}

}  // namespace gimbal
