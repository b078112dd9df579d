// Which mixture of storage formats predicts a text best within a memory budget. Candidates are whole
// mixtures. Each is planned from the header alone; those that fit are encoded in memory and measured. No file
// is written.
#pragma once
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/reports.h"
#include "quantize/quantize.h"
#include "runtime/likelihood.h"
#include "runtime/scored_windows.h"

namespace gimbal {

// Mixtures of the usual sizes, the largest first.
std::vector<std::string> usual_mixtures();

enum class Choosable : uint8_t { Yes, OverBudget, OverMemory, NotMade };
const char* name_of(Choosable);  // "yes", "over budget", "over memory", "cannot be made"

struct MixtureCost {
  std::string mixture;     // empty: the model as it is
  QuantizedTotals totals;  // of its file
  MemoryReport memory;     // of the plan
  uint64_t planned = 0;    // bytes of all devices, and of sessions
  Choosable choosable = Choosable::NotMade;
  std::string why;             // of anything but Yes
  std::vector<double> losses;  // nats of each scored token; empty: not measured
  Mean loss;                   // of these
};

struct ChoiceWork {
  const ModelFile& model;
  const Importance* importance;  // nullptr: none
  uint64_t budget;               // bytes of MixtureCost::planned
};

// A mixture, or the model as it is if the name is empty. `engine` has the options that the model will run
// with. Errors: those of the plan, for any mixture; Usage for an unknown name.
Result<MixtureCost> plan_mixture(Engine& engine, const ChoiceWork&, const std::string& mixture);

// The options of an engine for measure_mixture(), made of the user's.
EngineOptions measuring_options(EngineOptions, int window);
// Adds the losses on a text. `progress` gets the number of computed windows; false ends the work. Errors:
// those of encoding, Engine::load and ScoredWindows::score; Failed after `progress` returned false.
Status measure_mixture(Engine& measuring, const ChoiceWork&, const ScoredWindows&, MixtureCost&,
                       const std::function<bool(int windows)>& progress);

// The candidate with the least mean loss; SIZE_MAX: none was measured.
size_t least_loss(const std::vector<MixtureCost>&);
// How much more a candidate loses than another one, token by token: both read the same tokens, so this is far
// more certain than the difference of two means.
Mean excess_loss(const MixtureCost& of, const MixtureCost& over);

}  // namespace gimbal
