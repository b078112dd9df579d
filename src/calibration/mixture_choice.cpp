#include "calibration/mixture_choice.h"

#include <algorithm>

#include "base/format.h"
#include "quantize/quantize.h"
#include "runtime/memory_check.h"
#include "runtime/sampler.h"

namespace gimbal {
namespace {

// The model in the formats of a candidate. The work must outlive the file.
struct Candidate {
  Derivation derivation;
  ModelFile file;
};

Result<std::unique_ptr<Candidate>> candidate_of(const ChoiceWork& work, const std::string& mixture,
                                                QuantizedTotals& totals) {
  auto made = std::make_unique<Candidate>();
  const ModelSource& source = *work.model.file;
  if (mixture.empty()) {
    for (const StoredTensor& t : source.tensors())
      totals.bytes += t.bytes, totals.values += uint64_t(t.values());
    totals.from_bytes = totals.bytes;
    made->file = work.model;
    return made;
  }
  auto named = mixture_named(mixture);
  if (!named) return named.error();
  made->derivation.rules.mixture = *named;
  const QuantizeWork quantizing{source, made->derivation, work.importance};
  auto planned = plan_quantization(quantizing);
  if (!planned) return planned.error();
  totals = std::move(*planned);
  auto file = quantized_source(quantizing);
  if (!file) return file.error();
  made->file = {format("{} in {}", work.model.name, named->name), "",
                std::make_shared<const ModelSource>(std::move(*file))};
  return made;
}

uint64_t planned_bytes(const ModelPlan& plan) {
  uint64_t sum = plan.host_bytes();
  for (const Stage& stage : plan.stages) sum += stage.memory.total();
  return sum;
}

}  // namespace

std::vector<std::string> usual_mixtures() {
  return {"Q8_0",   "Q6_K",   "Q5_K_M", "Q5_K_S", "Q4_K_M",  "Q4_K_S", "IQ4_XS",
          "Q3_K_L", "Q3_K_M", "IQ3_M",  "Q3_K_S", "IQ3_XXS", "Q2_K",   "IQ2_M"};
}

const char* name_of(Choosable c) {
  switch (c) {
    case Choosable::Yes: return "yes";
    case Choosable::OverBudget: return "over budget";
    case Choosable::OverMemory: return "over memory";
    case Choosable::NotMade: return "cannot be made";
  }
  return "";
}

Result<MixtureCost> plan_mixture(Engine& engine, const ChoiceWork& work, const std::string& mixture) {
  MixtureCost cost;
  cost.mixture = mixture;
  if (!mixture.empty())
    if (const auto named = mixture_named(mixture); !named) return named.error();
  auto candidate = candidate_of(work, mixture, cost.totals);
  if (!candidate) {
    // Of this mixture alone: it needs importance, for example.
    if (candidate.error().code != Code::Usage) return candidate.error();
    cost.why = candidate.error().message;
    return cost;
  }
  auto planned = engine.plan((*candidate)->file);
  if (!planned) {
    if (planned.error().code != Code::OutOfMemory) return planned.error();
    cost.choosable = Choosable::OverMemory, cost.why = planned.error().message;
    return cost;
  }
  const ModelPlan& plan = planned->plan;
  cost.memory = memory_report(plan), cost.planned = planned_bytes(plan);
  cost.choosable = Choosable::Yes;
  if (const auto fits = check_memory(*(*candidate)->file.file, plan); !fits)
    cost.choosable = Choosable::OverMemory, cost.why = fits.error().message;
  else if (cost.planned > work.budget)
    cost.choosable = Choosable::OverBudget,
    cost.why =
        format("the plan takes {}, the budget is {}", human_bytes(cost.planned), human_bytes(work.budget));
  return cost;
}

EngineOptions measuring_options(EngineOptions options, int window) {
  options.run.context = window;
  options.run.logit_rows = std::min(options.run.batch, 32);
  options.run.sequences = 1, options.run.cache_positions = 0, options.run.drafts = 0;
  options.packed = Packed::Off;  // of a file that does not exist
  return options;
}

Status measure_mixture(Engine& measuring, const ChoiceWork& work, const ScoredWindows& text,
                       MixtureCost& cost, const std::function<bool(int windows)>& progress) {
  QuantizedTotals totals;
  auto candidate = candidate_of(work, cost.mixture, totals);
  if (!candidate) return candidate.error();
  auto loaded = measuring.load((*candidate)->file);
  if (!loaded) return loaded.error();
  auto session = Session::create(*(*loaded)->model);
  if (!session) return session.error();
  for (int w = 0; w < text.windows(); w++) {
    if (progress && !progress(w)) return Error{Code::Failed, "interrupted", ""};
    auto ok = text.score(**session, text.tokens(w), ScoredWindows::Rows::Scored,
                         [&](std::span<const float> logits, Token next) -> Status {
                           if (auto finite = check_logits(logits); !finite) return finite;
                           cost.losses.push_back(log_sum_exp(logits) - double(logits[size_t(next)]));
                           cost.loss.add(cost.losses.back());
                           return Done{};
                         });
    if (!ok) return ok;
  }
  if (progress) progress(text.windows());
  return Done{};
}

size_t least_loss(const std::vector<MixtureCost>& all) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < all.size(); i++)
    if (!all[i].losses.empty() && (best == SIZE_MAX || all[i].loss.value() < all[best].loss.value()))
      best = i;
  return best;
}

Mean excess_loss(const MixtureCost& of, const MixtureCost& over) {
  Mean excess;
  for (size_t i = 0; i < std::min(of.losses.size(), over.losses.size()); i++)
    excess.add(of.losses[i] - over.losses[i]);
  return excess;
}

}  // namespace gimbal
