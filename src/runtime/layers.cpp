#include "runtime/layers.h"

#include "base/format.h"
#include "runtime/memory_check.h"

namespace gimbal {

Result<ModelPlan> place_layers(const ModelSource& file, const Device& device, const Device& cpu, int layers,
                               const RunOptions& options) {
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
    if (layers == 0) return whole(cpu, lack + ": not even one layer fits there");
    why_there = format("as many layers as fit in the {} free", human_bytes(free));
    why_here = lack;
  }
  const Placement where[] = {{&cpu, all - layers, why_here}, {&device, layers, why_there}};
  return make_model_plan(file, where, options);
}

}  // namespace gimbal
