// gimbal pack: stores a model's weights in the device's packed layout; later starts map them. The model
// itself is not loaded, and may be larger than memory.
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/packed.h"

namespace gimbal {
namespace {

class Pack final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.flag("--cache", "write to the cache folder, not beside the model's file", cache_);
    gimbal::declare(a, engine_setting("threads"), engine_);
    gimbal::declare(a, engine_setting("kernel_config"), engine_);
    a.example("gimbal pack model.gguf");
  }

  Result<int> run() override {
    engine_.backend = kHostBackend, engine_.packed = Packed::Off;
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    const auto planned = engine.plan_measured(*source);
    if (!planned) return planned.error();
    const ModelPlan& plan = planned->plan;
    const std::string device = plan.device().id();
    Progress bar("packing", !quiet, Progress::Unit::Bytes);
    auto path = pack_weights(planned->source, plan, cache_,
                             [&](uint64_t done, uint64_t total) { return bar.update(done, total), true; });
    if (!path) return path.error();
    const uint64_t bytes = plan.last().memory.weights;
    if (json) print_json({{"model", source->name}, {"path", *path}, {"bytes", bytes}, {"device", device}});
    else print(format("{}: {} in the layout of {}\n", printable(*path), human_bytes(bytes), device));
    return kDone;
  }

 private:
  std::string model_;
  bool cache_ = false;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_pack() { return std::make_unique<Pack>(); }

}  // namespace gimbal
