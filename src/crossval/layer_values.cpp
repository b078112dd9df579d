#include "crossval/layer_values.h"

#include <algorithm>
#include <map>

namespace gimbal::crossval {

std::vector<LayerValue> layer_values(const Program& p, int width) {
  // By root: the op that computes it, and the last op that reads it.
  std::vector<size_t> made(p.values.size(), SIZE_MAX), read(p.values.size(), 0);
  std::map<int, size_t> last;  // op of each layer
  for (size_t i = 0; i < p.ops.size(); i++) {
    const gimbal_op& op = p.ops[i];
    for (int k = 0; k < int(op.inputs); k++) read[p.info[op.in[k]].root] = i;
    made[p.info[op.out[0]].root] = i;
    if (p.layer[i] != kBeforeLayers && p.layer[i] != kAfterLayers) last[p.layer[i]] = i;
  }
  std::vector<LayerValue> all;
  for (const auto& [layer, end] : last) {
    size_t found = SIZE_MAX;
    std::map<std::string, int> names;
    for (size_t v = 0; v < p.values.size(); v++) {
      const Shape& s = p.info[v].shape;
      const bool rows = p.info[v].root == v && s.type == DType::F32 && s.rank == 2 && s.dim[0] == width &&
                        p.values[v].slot == uint32_t(Slot::Work);
      if (!rows || made[v] == SIZE_MAX || made[v] > end || read[v] <= end || p.layer[made[v]] != layer)
        continue;
      names[p.info[v].name]++;
      if (found == SIZE_MAX || made[v] > made[found]) found = v;
    }
    if (found != SIZE_MAX && names[p.info[found].name] == 1)
      all.push_back({layer, end, uint16_t(found), p.info[found].name});
  }
  return all;
}

}  // namespace gimbal::crossval
