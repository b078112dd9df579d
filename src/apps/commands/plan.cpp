// gimbal plan: the memory that a model will take, by kind and device, from its header alone.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/explanation.h"
#include "engine/measured.h"
#include "engine/tensor_places.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

class Plan final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--draft", "auto|off|ngram|mtp|MODEL",
           "include the memory of these drafts, as in `run` (default off)", draft_);
    a.flag("--tensors", "list each tensor, too: bytes, layout, device, and the kernel that reads it",
           tensors_);
    a.text("--mmproj", "FILE",
           "include the encoder of pictures in this projector file, at the largest picture", mmproj_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal plan model.gguf --ctx 32768");
    a.example("gimbal plan model.gguf --tensors --json");
  }

  Result<int> run() override {
    auto planned = plan_model(model_, engine_, quiet, &Engine::plan, draft_.value_or("off"), mmproj_);
    if (!planned) return planned.error();
    Status fits = planned->draft ? check_memory(*planned->draft->source.file, planned->draft->plan) : Done{};
    if (fits && planned->image) fits = check_memory(*planned->image->source.file, planned->image->plan);
    if (fits) fits = check_memory(*planned->model.source.file, planned->model.plan);
    if (!fits) fits = worded(fits.error());
    std::optional<ExpertSpeed> speed;
    if (planned->model.plan.options.experts_from_disk) {
      auto measured = measure_experts(planned->model.plan);
      if (!measured) return measured.error();
      speed = *measured;
    }
    if (json) print_as_json(*planned, fits, speed);
    else print_for_people(*planned, fits, speed);
    return !fits && engine_.strict ? kOutOfMemory : kDone;
  }

 private:
  void print_as_json(const Planned& planned, const Status& fits,
                     const std::optional<ExpertSpeed>& speed) const {
    const PlannedModel& p = planned.model;
    PlanReport r = plan_report(p.source.name, p.plan);
    if (planned.draft) {
      r.draft_model = planned.draft->source.name;
      r.draft_memory = memory_report(planned.draft->plan);
    }
    r.placement = worded_placement(p.plan, p.opened), r.fallbacks = sentences(p.fallbacks);
    r.kv_rotation.why = with_options(r.kv_rotation.why), r.fits = bool(fits);
    if (!fits) r.remedy = fits.error().remedy;
    Json j = report_json(r);
    j["max_context_length"] = largest_context(p.plan);
    if (planned.image) {
      const PlannedModel& i = *planned.image;
      PlanReport image = plan_report(i.source.name, i.plan);
      image.placement = worded_placement(i.plan, i.opened), image.fallbacks = sentences(i.fallbacks);
      image.fits = gimbal::fits(i.plan);
      j["image"] = report_json(image);
    }
    if (speed) j["experts_from_disk"] = experts_json(p.plan, *speed);
    if (tensors_) j["tensors"] = report_json(named_places(p));
    print_json(j);
  }

  void print_for_people(const Planned& planned, const Status& fits,
                        const std::optional<ExpertSpeed>& speed) const {
    const PlannedModel& p = planned.model;
    const ModelPlan& b = p.plan;
    Table head("ll");
    head.row({"model", format("{} ({}, {} layers, file of {})", printable(p.source.name), b.config.arch,
                              b.config.layers, human_bytes(p.source.file->file_bytes()))});
    const std::vector<MemoryUse> uses = memory_uses(b);
    for (const MemoryUse& u : uses) {
      if (!u.device) continue;
      const gimbal_device_info d = u.device->describe();
      head.row({"device", format("{}, {}: {} free of {}", u.device->id(), printable(d.name ? d.name : ""),
                                 human_bytes(u.sum.free), human_bytes(d.memory_total))});
    }
    head.row({"context", format("{} positions (trained on {}), prompts in batches of {}, KV cache in {}",
                                b.options.context, b.config.context, b.options.batch, cache_line(b))});
    for (const std::string& line : placement_lines(p)) head.row({"placement", line});
    for (const std::string& line : packed_lines(b)) head.row({"weights", line});
    if (speed) head.row({"speed", speed_line(*speed)});
    if (planned.draft)
      head.row({"drafts", format("by {}, loaded first; its memory does not count as free",
                                 printable(planned.draft->source.name))});
    if (planned.image)
      head.row(
          {"pictures", format("by {}, up to {} patches at once; loaded first",
                              printable(planned.image->source.name), planned.image->plan.options.batch)});
    print(head.text());
    for (const MemoryUse& u : uses) print_use(u, "");
    if (tensors_) print_tensors(p);
    if (planned.draft)
      for (const MemoryUse& u : memory_uses(planned.draft->plan)) print_use(u, " for drafts");
    if (planned.image)
      for (const MemoryUse& u : memory_uses(planned.image->plan)) print_use(u, " for pictures");
    if (fits) {
      std::string free;
      for (const MemoryUse& u : uses)
        if (u.device)
          free += format("{}{}{}", free.empty() ? "" : ", ", human_bytes(u.sum.free - u.sum.total()),
                         b.split() ? " on " + u.device->id() : "");
      print(format("\nIt fits: {} would stay free. Nothing more is allocated while it runs.\n", free));
      return;
    }
    std::string lack;
    // The drafting model is loaded first, so it runs out of memory first. The host comes last: a lack that
    // its devices report already is not repeated.
    const bool drafts = planned.draft && !gimbal::fits(planned.draft->plan);
    for (const MemoryUse& u : drafts ? memory_uses(planned.draft->plan) : uses)
      if (u.sum.total() > u.sum.free && (u.device || lack.empty()))
        lack += format("{}{} more would be needed{}", lack.empty() ? "" : ", ",
                       human_bytes(u.sum.total() - u.sum.free),
                       !u.device   ? " on this machine"
                       : b.split() ? " on " + u.device->id()
                                   : "");
    print(format("\nIt does not fit: {}.\n  {}\n", lack, fits.error().remedy));
  }

  // In bytes, and tokens/s.
  static Json experts_json(const ModelPlan& plan, const ExpertSpeed& s) {
    DiskExperts sum;
    for (const Stage& stage : plan.stages) {
      const DiskExperts& d = stage.experts;
      sum.in_memory += d.in_memory, sum.budget += d.budget, sum.all += d.all;
      sum.least = std::max(sum.least, d.least);
    }
    return {{"weights_in_memory", sum.in_memory},  {"budget", sum.budget},
            {"least_budget", sum.least},           {"all_experts", sum.all},
            {"experts_of_token", s.of_token},      {"disk_bytes_per_second", s.disk},
            {"past_page_cache", s.direct},         {"tokens_per_second_at_least", s.at_least},
            {"tokens_per_second_evenly", s.evenly}};
  }

  // With the reason that the choice of the device has, where a stage has none of its own.
  static std::vector<TensorPlace> named_places(const PlannedModel& p) {
    std::vector<TensorPlace> all = tensor_places(p.plan);
    for (TensorPlace& t : all) t.why = t.why.empty() ? p.opened.why : with_options(t.why);
    return all;
  }

  static void print_tensors(const PlannedModel& p) {
    print("\n" + bold("Tensors") + "\n");
    Table t("lllrlll");
    std::string last;
    for (const TensorPlace& place : named_places(p)) {
      if (place.device != last) print(format("  on {} ({})\n", last = place.device, printable(place.why)));
      t.row({printable(place.name), place.format, place.shape, format("{} bytes", place.bytes), place.device,
             place.buffer == "weights" ? place.layout : printable(place.buffer), place.kernel});
    }
    print(t.text("  "));
  }

  static void print_use(const MemoryUse& u, const char* what) {
    const MemoryPlan& m = u.sum;
    if (!u.device) {
      print(format("\nThis machine's own memory{}: {} in all, {} of it for the conversation, {} free\n", what,
                   human_bytes(m.total()), human_bytes(m.sessions), human_bytes(m.free)));
      return;
    }
    print("\n" + bold(format("Memory on {}{}", u.device->id(), what)) + "\n");
    Table t("lrr");
    auto row = [&](const char* what, uint64_t bytes) {
      t.row({what, human_bytes(bytes), format("{} bytes", bytes)});
    };
    row("weights", m.weights), row("KV cache", m.cache), row("activations", m.activations);
    row("step data", m.step), row("output", m.output);
    if (m.scratch) row("scratch", m.scratch);
    row("total", m.total());
    if (m.transfer) row("of which transfers", m.transfer);
    print(t.text("  "));
  }

  std::string model_;
  std::optional<std::string> mmproj_, draft_;
  bool tensors_ = false;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<Plan>(); }

}  // namespace gimbal
