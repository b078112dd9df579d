#include "quantize/patterns.h"

#include "files/name_pattern.h"

namespace gimbal {

Result<std::vector<std::optional<DType>>> formats_by_name(const TensorTable& tensors,
                                                          const std::vector<FormatOfNames>& rules) {
  std::vector<std::optional<DType>> all(tensors.size());
  for (const FormatOfNames& rule : rules) {
    auto pattern = NamePattern::compile(rule.pattern);
    if (!pattern) return pattern.error();
    for (const StoredTensor& t : tensors)
      if (!all[t.index] && pattern->found_in(std::string(t.name))) all[t.index] = rule.format;
  }
  return all;
}

}  // namespace gimbal
