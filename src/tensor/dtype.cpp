#include "tensor/dtype.h"

namespace gimbal {

std::string names_of(DTypeSet set) {
  std::string names;
  for (DType t : kAllDTypes)
    if (has(set, t)) names += (names.empty() ? "" : ", ") + std::string(info(t).name);
  return names;
}

std::optional<DType> dtype_named(std::string_view name) {
  auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? char(b + 32) : b); };
  for (DType t : kAllDTypes) {
    std::string_view known = info(t).name;
    size_t j = 0;
    while (j < known.size() && j < name.size() && same(known[j], name[j])) j++;
    if (j == known.size() && j == name.size()) return t;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_gguf(uint32_t id) {
  for (DType t : kAllDTypes)
    if (info(t).gguf == id && id != kNotInFiles) return t;
  return std::nullopt;
}

}  // namespace gimbal
