#include "runtime/stages.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "device/values.h"

namespace gimbal {
namespace {

// The stage of every op. Layers are in order, and so are the stages.
std::vector<size_t> stage_of_ops(const Program& p, const std::vector<Stage>& stages) {
  std::vector<size_t> all;
  const auto first = size_t(std::find_if(stages.begin(), stages.end(), has_layers) - stages.begin());
  for (int layer : p.layer) {
    size_t stage = first;
    if (layer == kAfterLayers) stage = stages.size() - 1;
    else if (layer != kBeforeLayers)
      while (stage + 1 < stages.size() && layer >= stages[stage].first_layer + stages[stage].layers) stage++;
    all.push_back(stage);
  }
  return all;
}

}  // namespace

Result<std::vector<Stage>> stages_of(std::span<const Placement> where, int layers,
                                     const std::vector<TensorRule>& rules) {
  std::vector<Stage> stages;
  int64_t next = 0;
  for (size_t i = 0; i < where.size(); i++) {
    const bool first = i == 0, last = i + 1 == where.size();
    if (where[i].layers < 0)
      return Error{Code::Usage, format("a device cannot hold {} layers", where[i].layers), ""};
    if (where[i].layers || first || last)
      stages.push_back({.device = where[i].device,
                        .first_layer = int(next),
                        .layers = where[i].layers,
                        .embedding = first,
                        .head = last,
                        .why = where[i].why});
    next += where[i].layers;
  }
  if (next != layers || stages.empty())
    return Error{Code::Usage, format("{} layers are assigned to devices, but the model has {}", next, layers),
                 "the numbers of layers must add up to the model's"};
  std::vector<Stage> all;
  for (const TensorRule& r : rules) {
    const auto is_there = [&](const Stage& s) { return s.device == r.device; };
    if (std::any_of(stages.begin(), stages.end(), is_there)) continue;
    auto same = std::find_if(all.begin(), all.end(), is_there);
    if (same == all.end()) same = all.insert(all.end(), Stage{.device = r.device});
    if (same->why.find(r.why) == std::string::npos) same->why += (same->why.empty() ? "" : ", ") + r.why;
  }
  std::move(stages.begin(), stages.end(), std::back_inserter(all));
  return all;
}

Result<MovedOps> places_of_ops(const Program& p, const ModelPlan& b, const std::vector<int>& rules) {
  const std::vector<size_t> layers = stage_of_ops(p, b.stages);
  std::vector<std::optional<WeightPlace>> places(p.weights.size());
  for (size_t w = 0; w < places.size(); w++) {
    const uint32_t tensor = p.sources[w].tensor;
    const int rule = tensor < rules.size() ? rules[tensor] : -1;
    if (rule < 0) continue;
    const Device* device = b.options.tensor_rules[size_t(rule)].device;
    size_t stage = 0;
    while (b.stages[stage].device != device) stage++;
    places[w] = WeightPlace{stage, rule};
  }
  return move_ops(p, layers, places);
}

void count_moved(const Program& p, const MovedOps& moved, ModelPlan& b) {
  const std::vector<size_t> layers = stage_of_ops(p, b.stages);
  std::vector<bool> counted(p.values.size());
  for (size_t i = 0; i < p.ops.size(); i++)
    for (uint16_t in : inputs_of(p.ops[i])) {
      const uint16_t root = p.info[in].root;
      if (moved.rule[i] < 0 || p.values[root].slot != uint32_t(Slot::Weights) || counted[root]) continue;
      counted[root] = true;
      b.stages[moved.stage.ops[i]].moved_in++, b.stages[layers[i]].moved_out++;
    }
}

std::string contents(const Stage& p) {
  std::string layers = p.layers == 1 ? format("layer {}", p.first_layer)
                       : p.layers    ? format("layers {} to {}", p.first_layer, p.first_layer + p.layers - 1)
                                     : "";
  std::string all = p.embedding ? "the embedding" : "";
  if (!layers.empty()) all += (all.empty() ? "" : p.head ? ", " : " and ") + layers;
  if (p.head) all += (all.empty() ? "" : " and ") + std::string("the output head");
  auto tensors = [](int n) { return n == 1 ? std::string("1 tensor") : format("{} tensors", n); };
  if (p.moved_out) all += format(", without {}", tensors(p.moved_out));
  if (p.moved_in)
    all += (all.empty() ? "" : ", with ") + tensors(p.moved_in) + (all.empty() ? "" : " of others");
  return all;
}

}  // namespace gimbal
