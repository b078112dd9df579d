#include "runtime/stages.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "device/values.h"
#include "ops/op_def.h"
#include "runtime/memory_check.h"

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

namespace {

// Bytes that a step of one row reads on a device.
double bytes_per_token(const ModelPlan& b, const Device& d) {
  const gimbal_step one{1, 1};
  double bytes = 0;
  for (const Stage& stage : b.stages) {
    const Program& p = stage.buckets[b.bucket_for(1)].program;
    if (stage.device == &d)
      for (const gimbal_op& op : p.ops)
        bytes += cost(OpKind(op.kind), p.input_shapes(op, one), p.output_shape(op, one)).bytes_read;
  }
  return bytes;
}

// All layers on the device, without the experts of as few layers as possible; nullopt: that does not fit, or
// there are no experts to move.
Result<std::optional<ModelPlan>> without_experts(const ModelSource& file, const Device& device,
                                                 const Device& cpu, int layers, const RunOptions& options) {
  RunOptions run = options;
  run.tensor_rules.push_back({kExpertTensors, &cpu, "", layers});
  const int rule = int(options.tensor_rules.size());
  auto rules = rules_of_tensors(file.tensors(), run.tensor_rules);
  if (!rules) return rules.error();
  if (std::find(rules->begin(), rules->end(), rule) == rules->end()) return std::optional<ModelPlan>();
  std::optional<ModelPlan> found;
  for (int too_few = 0, enough = layers + 1; enough - too_few > 1;) {
    const int now = too_few + (enough - too_few) / 2;
    run.tensor_rules.back().layers = now;
    run.tensor_rules.back().why =
        now < layers ? format("the experts of the first {} layers", now) : "the experts of all layers";
    auto b = make_model_plan(file, device, run);
    if (!b) return b.error();
    const bool fit = b->last().memory.total() <= b->last().memory.free;
    (fit ? enough : too_few) = now;
    if (fit) found = std::move(*b);
  }
  return found;
}

}  // namespace

Result<ModelPlan> place_layers(const ModelSource& file, const Device& device, const Device& cpu, int layers,
                               const RunOptions& options, bool experts_may_move) {
  auto config = configure(file, options.arch);
  if (!config) return config.error();
  const int all = config->layers;
  auto whole = [&](const Device& d, std::string why) {
    const Placement where{&d, all, std::move(why)};
    return make_model_plan(file, std::span(&where, 1), options);
  };
  if (layers == 0) return whole(cpu, "no layers on the GPU were requested");
  if (layers >= all) return whole(device, format("{} layers on the GPU were requested", layers));
  std::string why_there, why_here;
  std::optional<ModelPlan> experts_here;
  if (layers > 0) {
    why_there = format("{} layers on the GPU were requested", layers);
    why_here = "the rest of the model";
  } else {
    const uint64_t free = free_for(options, &device);
    auto everything = whole(device, format("all of it fits in the {} free", human_bytes(free)));
    if (!everything || everything->last().memory.total() <= free) return everything;
    auto fit = layers_that_fit(file, device, options);
    if (!fit) return fit.error();
    layers = *fit;
    const std::string lack =
        format("the whole model takes {} on {}, which has {} free",
               human_bytes(everything->last().memory.total()), device.id(), human_bytes(free));
    if (experts_may_move) {
      auto found = without_experts(file, device, cpu, all, options);
      if (!found) return found.error();
      experts_here = std::move(*found);
    }
    if (layers == 0 && !experts_here) return whole(cpu, lack + ": not even one layer fits there");
    why_there = format("as many layers as fit in the {} free", human_bytes(free));
    why_here = lack;
  }
  const Placement where[] = {{&cpu, all - layers, why_here}, {&device, layers, why_there}};
  auto b = layers ? make_model_plan(file, where, options) : whole(cpu, why_here);
  if (!b || !experts_here) return b;
  const double with_layers = bytes_per_token(*b, cpu), with_experts = bytes_per_token(*experts_here, cpu);
  if (with_experts >= with_layers) return b;
  const std::string reason = format("{}: {}, and a token reads {} there in place of {} with whole layers",
                                    experts_here->options.tensor_rules.back().why, why_here,
                                    human_bytes(uint64_t(with_experts)), human_bytes(uint64_t(with_layers)));
  experts_here->options.tensor_rules.back().why = reason;
  for (Stage& stage : experts_here->stages)
    if (stage.device == &cpu) stage.why = reason;
  return std::move(*experts_here);
}

}  // namespace gimbal
