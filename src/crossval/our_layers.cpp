#include "crossval/our_layers.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "crossval/layer_values.h"
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

}  // namespace gimbal::crossval
