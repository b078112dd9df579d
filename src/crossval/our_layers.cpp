#include "crossval/our_layers.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/session.h"

namespace gimbal::crossval {

Status our_layers(const ModelSource& file, const Device& device, RunOptions options,
                  std::span<const int32_t> tokens, const LayerSink& sink) {
  options.batch = options.logit_rows = int(tokens.size());
  options.context = std::max(options.context, options.batch);
  options.sequences = 1, options.cache_positions = 0, options.drafts = 0;
  auto whole = make_model_plan(file, device, options);
  if (!whole) return whole.error();
  const int layers = whole->config.layers;
  std::map<int, std::string> name;
  const size_t bucket = whole->bucket_for(int(tokens.size()));
  for (const LayerValue& v : layer_values(whole->stages[0].buckets[bucket].program, whole->config.width))
    name[v.layer] = v.name;

  std::vector<Placement> where{{&device, 0, ""}};
  for (int i = 0; i < layers; i++) where.push_back({&device, 1, ""});
  where.push_back({&device, 0, ""});
  auto plan = make_model_plan(file, where, options);
  if (!plan) return plan.error();
  auto model = Model::load(std::move(*plan), file);
  if (!model) return model.error();
  auto session = Session::create(**model);
  if (!session) return session.error();
  const ModelPlan& p = (*model)->plan();
  int next = 0;
  (*model)->watch([&](size_t stage, uint16_t value, std::span<const std::byte> bytes) {
    const Program& program = p.stages[stage].buckets[bucket].program;
    const ValueInfo& info = program.info[value];
    const int layer = p.stages[stage].first_layer - 1;
    if (layer < next || !name.contains(layer) || info.name != name[layer] || info.shape.type != DType::F32 ||
        info.shape.rank != 2)
      return;
    std::vector<float> rows(bytes.size() / sizeof(float));
    std::memcpy(rows.data(), bytes.data(), rows.size() * sizeof(float));
    sink(layer, int(info.shape.dim[0]), rows);
    next = layer + 1;
  });
  return (*session)->advance(tokens, Session::Wanted::All, [](size_t, std::span<const float>) {});
}

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
