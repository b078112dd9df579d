// What a run was like: for --stats and for --json.
#pragma once
#include <string>

#include "base/json_fwd.h"
#include "engine/engine.h"
#include "engine/reports.h"
#include "runtime/generate.h"

namespace gimbal {

size_t device_count(const ModelPlan&);
// With why each device was chosen, in the words of options.
std::vector<PlacedLayers> worded_placement(const ModelPlan&, const OpenedDevice&);
// "4.66 GB, mapped from 'FILE'", for each stage whose weights are packed ones.
std::vector<std::string> packed_lines(const ModelPlan&);
// Lines for stderr, each with its newline. `before`: the model's receipt when the text began.
std::string run_stats(const LoadedModel&, const Generated&, uint64_t seed,
                      const std::vector<ReceiptLine>& before);
// Why the text ended, when the user may wonder: empty for the usual ends.
std::string explain_finish(Finish, const Model&);
// {from, steps, tokens, drafted, accepted, seconds}.
Json drafts_json(const std::string& from, const DraftCounts&);
// "120 of 160 kept (75 %), 2.41 tokens a step".
std::string drafts_text(const DraftCounts&);
// docs/cli.md has the keys.
Json run_json(const LoadedModel&, const Generated&, const std::string& text, uint64_t seed);

}  // namespace gimbal
