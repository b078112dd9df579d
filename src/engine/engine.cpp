#include "engine/engine.h"

#include "base/format.h"
#include "device/reason.h"

namespace gimbal {

Engine::Engine(Registry& registry, EngineOptions options, EventSink events)
    : registry_(registry),
      options_([&] {
        options.run.kernels.strict = options.strict;
        return std::move(options);
      }()),
      record_(options_, std::move(events)),
      chooser_(registry, options_, record_),
      loader_(options_, chooser_, record_) {}

Status Engine::replace(LoadedModelPtr& on, const Error& lost, const MoveTo& move) {
  const std::vector<std::string> devices = replaceable(on->model->plan());
  if (devices.empty()) return lost;
  if (options_.strict) {
    Error refused = lost;
    refused.code = Code::NoBackend, refused.reason = reason::kDeviceLost;
    refused.changes.push_back({"strict", "false", "continues on the next best device"});
    return refused;
  }
  if (!on->successor) {
    for (const std::string& id : devices) record_.lost(id);
    // They named the lost devices.
    options_.split.clear(), options_.gpu_layers.reset();
    std::erase_if(options_.overrides,
                  [](const TensorOverride& o) { return o.device.backend != kHostBackend; });
    auto next = load(on->source);
    if (!next) return next.error();
    on->successor = std::move(*next);
  }
  auto done = move(model_of(on->successor));
  if (!done) return done.error();
  on = on->successor;
  record_.emit(
      event::Recovered{fmt::to_string(fmt::join(devices, ", ")), on->model->device().id(), *done, lost});
  return Done{};
}

OnDeviceLost Engine::on_device_lost(LoadedModelPtr& on) {
  return [this, &on](const Error& lost, const MoveTo& move) { return replace(on, lost, move); };
}

Status Engine::embed(LoadedModelPtr& on, std::span<const std::vector<int32_t>> texts,
                     const EmbedSettings& settings, const EmbeddingSink& sink) {
  size_t done = 0;
  const EmbeddingSink counted = [&](size_t text, std::span<const float> embedding) {
    auto ok = sink(text, embedding);
    if (ok) done = text + 1;
    return ok;
  };
  for (;;) {
    auto ok = gimbal::embed(*on->model, texts, settings, counted, done);
    if (ok || ok.error().code != Code::DeviceLost) return ok;
    auto moved = replace(on, ok.error(), [&](const ModelPtr&) -> Result<std::string> {
      return format("{} of {} texts", done, texts.size());
    });
    if (!moved) return moved;
  }
}

}  // namespace gimbal
