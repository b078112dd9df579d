// Converts the library's values to public ones.
#include "library/internal.h"

namespace gimbal::v1 {

Fallback to_public(const own::Fallback& f) { return {f.what, f.instead, to_public(f.why)}; }

Event to_public(const own::Event& e) {
  struct Convert {
    Event operator()(const own::Fallback& f) const {
      return {Event::Fallback, f.what, f.instead, to_public(f.why)};
    }
    Event operator()(const event::Chosen& c) const {
      Error why;
      why.message = c.opened.reason();
      return {Event::Chosen, c.opened.device->id(), "", std::move(why)};
    }
    Event operator()(const event::Unfulfilled& u) const {
      Error why{Code::Usage, u.message, "", "", u.field, u.value, "", {}};
      return {Event::Ignored, u.field, "", std::move(why)};
    }
    Event operator()(const event::LongContext& l) const {
      Error why{
          Code::Usage,
          format("the model was trained on {} positions; its text may get worse beyond them", l.trained),
          "",
          "",
          "context",
          format("{}", l.context),
          format("{}", l.trained),
          {}};
      return {Event::Note, "context", "", std::move(why)};
    }
    Event operator()(const event::Offloaded& o) const {
      Error why;
      why.message = o.text();
      return {Event::Note, "gpu_layers", "", std::move(why)};
    }
    Event operator()(const event::Progress& p) const {
      const auto kind = p.stage == event::Progress::Verifying   ? Event::Verifying
                        : p.stage == event::Progress::Measuring ? Event::Measuring
                                                                : Event::Loading;
      return {kind, p.device, "", {}, p.done, p.total};
    }
    Event operator()(const event::NotKept& n) const {
      return {Event::Note, "verified", "", to_public(n.why)};
    }
    Event operator()(const event::DraftsEnded& d) const {
      return {Event::Ignored, "draft", "", to_public(d.why)};
    }
    Event operator()(const event::Recovered& r) const {
      return {Event::Recovered, r.from, r.to, to_public(r.why)};
    }
  };
  return std::visit(Convert{}, e);
}

std::vector<PlannedMemory> memory_of(const gimbal::ModelPlan& plan) {
  std::vector<PlannedMemory> all;
  for (const gimbal::MemoryUse& u : memory_uses(plan)) {
    const MemoryPlan& m = u.sum;
    all.push_back({u.device ? u.device->id() : "", m.weights, m.cache, m.activations, m.step, m.output,
                   m.scratch, m.sessions, m.total(), m.free});
  }
  return all;
}

std::vector<Placement> placement_of(const gimbal::ModelPlan& plan, const OpenedDevice& opened) {
  std::vector<Placement> all;
  for (const Stage& p : plan.stages)
    all.push_back({p.device->id(), p.first_layer, p.layers, p.embedding, p.head,
                   p.why.empty() ? opened.reason() : p.why, p.moved_in, p.moved_out});
  return all;
}

ModelPlan to_public(const PlannedModel& p) {
  const gimbal::ModelPlan& plan = p.plan;
  ModelPlan to;
  to.name = p.source.name, to.architecture = plan.config.arch, to.file_bytes = p.source.file->file_bytes();
  to.layers = plan.config.layers, to.vocabulary = plan.config.vocabulary;
  to.context = plan.options.context, to.trained_context = plan.config.context;
  to.batch = plan.options.batch, to.sequences = plan.options.sequences;
  to.cache_type = info(plan.options.cache_type).name;
  to.cache_rotated = plan.rotation.rotated, to.cache_rotation_reason = plan.rotation.why;
  to.placement = placement_of(plan, p.opened);
  for (const own::Fallback& f : p.fallbacks) to.fallbacks.push_back(to_public(f));
  to.memory = memory_of(plan);
  if (auto ok = check_memory(*p.source.file, plan); ok) to.fits = true;
  else to.misfit = to_public(ok.error());
  return to;
}

Explanation to_public(gimbal::Explanation&& e) {
  Explanation to;
  to.weight_bytes_per_token = e.weight_bytes_per_token;
  for (auto& p : e.programs) {
    to.programs.push_back({std::move(p.purpose), p.rows, {}});
    for (auto& op : p.ops)
      to.programs.back().ops.push_back({std::move(op.name), std::move(op.output), size_t(op.choice)});
  }
  for (auto& c : e.choices) {
    to.choices.push_back({std::move(c.op),
                          std::move(c.format),
                          std::move(c.device),
                          std::move(c.kernel),
                          std::move(c.why),
                          {}});
    for (auto& r : c.rejected) to.choices.back().rejected.push_back({std::move(r.why), std::move(r.kernels)});
  }
  return to;
}

}  // namespace gimbal::v1
