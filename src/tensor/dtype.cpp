#include "tensor/dtype.h"

namespace gimbal {

std::string names_of(DTypeSet set) {
  std::string names;
  for (int i = 0; i < int(DType::Count); i++)
    if (has(set, DType(i))) names += (names.empty() ? "" : ", ") + std::string(kDTypes[i].name);
  return names;
}

std::optional<DType> dtype_named(std::string_view name) {
  auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? char(b + 32) : b); };
  for (int i = 0; i < int(DType::Count); i++) {
    std::string_view known = kDTypes[i].name;
    size_t j = 0;
    while (j < known.size() && j < name.size() && same(known[j], name[j])) j++;
    if (j == known.size() && j == name.size()) return DType(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_gguf(uint32_t id) {
  for (int i = 0; i < int(DType::Count); i++)
    if (kDTypes[i].gguf == id && id != kNotInFiles) return DType(i);
  return std::nullopt;
}

}  // namespace gimbal
