#include "runtime/tensor_rules.h"

#include <charconv>

#include "files/name_pattern.h"

namespace gimbal {
namespace {

// N of "blk.N.attn_q.weight"; -1: the tensor belongs to no layer.
int layer_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  int layer = -1;
  if (!name.starts_with(kBlock)) return layer;
  std::from_chars(name.data() + kBlock.size(), name.data() + name.size(), layer);
  return layer;
}

}  // namespace

Result<std::vector<int>> rules_of_tensors(const TensorTable& tensors, std::span<const TensorRule> rules) {
  std::vector<int> all(tensors.size(), -1);
  for (size_t r = 0; r < rules.size(); r++) {
    auto pattern = NamePattern::compile(rules[r].pattern);
    if (!pattern) return pattern.error();
    const bool every = rules[r].layers == std::numeric_limits<int>::max();
    for (const StoredTensor& t : tensors) {
      const int layer = layer_of(t.name);
      if (all[t.index] < 0 && (every || (layer >= 0 && layer < rules[r].layers)) &&
          pattern->found_in(std::string(t.name)))
        all[t.index] = int(r);
    }
  }
  return all;
}

}  // namespace gimbal
