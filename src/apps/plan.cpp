// gimbal plan: the memory that a model will take, by kind and device, from its header alone.
#include <algorithm>

#include "apps/command.h"
#include "apps/open_engine.h"
#include "apps/run_report.h"
#include "apps/terminal.h"

namespace gimbal {
namespace {

class Plan final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("MODEL", kModelHelp, model_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal plan model.gguf --ctx 32768");
  }

  Result<int> run() override {
    auto options = run_options(engine_);
    if (!options) return options.error();
    auto source = open_model_file(model_);
    if (!source) return source.error();
    auto planned = plan_model(std::move(*source), engine_, *options, quiet);
    if (!planned) return planned.error();
    const Status fits = check_memory(planned->blueprint);
    if (json) print_as_json(*planned, fits);
    else print_for_people(*planned, fits);
    return !fits && engine_.strict ? kOutOfMemory : kDone;
  }

 private:
  void print_as_json(const PlannedModel& p, const Status& fits) const {
    const Blueprint& b = p.blueprint;
    Json j{{"model", p.source.name},
           {"architecture", b.config.arch},
           {"file_bytes", p.source.file->file_bytes()},
           {"context", b.options.context},
           {"trained_context", b.config.context},
           {"batch", b.options.batch},
           {"kv_type", info(b.options.cache_type).name}};
    Json memory = memory_json(b.memory);
    memory["device"] = b.device->id();
    memory["memory_total"] = b.device->describe().memory_total;
    j["devices"] = Json::array({std::move(memory)});
    j["placement"] = Json::array(
        {{{"device", b.device->id()}, {"layers", {0, b.config.layers - 1}}, {"reason", p.opened.reason}}});
    j["fallbacks"] = p.opened.fallbacks;
    j["fits"] = bool(fits);
    j["remedy"] = fits ? Json() : Json(fits.error().remedy);
    print_json(j);
  }

  void print_for_people(const PlannedModel& p, const Status& fits) const {
    const Blueprint& b = p.blueprint;
    const MemoryPlan& m = b.memory;
    const gimbal_device_info d = b.device->describe();
    Table head("ll");
    head.row({"model", format("{} ({}, {} layers, file of {})", printable(p.source.name), b.config.arch,
                              b.config.layers, human_bytes(p.source.file->file_bytes()))});
    head.row({"device", format("{}, {}: {} free of {}", b.device->id(), printable(d.name ? d.name : ""),
                               human_bytes(m.free), human_bytes(d.memory_total))});
    head.row({"context",
              format("{} positions (trained on {}), prompts in batches of {}, KV cache in {}",
                     b.options.context, b.config.context, b.options.batch, info(b.options.cache_type).name)});
    head.row({"placement",
              format("all {} layers on {} ({})", b.config.layers, b.device->id(), short_reason(p.opened))});
    print(head.text() + "\n" + bold(format("Memory on {}", b.device->id())) + "\n");
    Table t("lrr");
    auto row = [&](const char* what, uint64_t bytes) {
      t.row({what, human_bytes(bytes), format("{} bytes", bytes)});
    };
    row("weights", m.weights), row("KV cache", m.cache), row("activations", m.activations),
        row("step data", m.step), row("output", m.output), row("total", m.total());
    print(t.text("  "));
    if (fits) {
      print(format("\nIt fits: {} would stay free. Nothing more is allocated while it runs.\n",
                   human_bytes(m.free - m.total())));
      return;
    }
    print(format("\nIt does not fit: {} more would be needed.\n  {}\n", human_bytes(m.total() - m.free),
                 fits.error().remedy));
  }

  std::string model_;
  EngineOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<Plan>(); }

}  // namespace gimbal
