// gimbal bench --draft: the same text generated without drafts and with them, in turns.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/shared/terminal.h"
#include "base/json_fwd.h"
#include "engine/drafts.h"

namespace gimbal {

// What --draft names: "scripted:P", or what `run` takes.
struct DraftSource {
  std::optional<double> scripted;  // how often it is right
  std::unique_ptr<Drafts> drafts;  // in its place
};
// Sets what the model must be loaded with. Errors: Usage for a P that is none; those of open_drafts().
Result<DraftSource> open_draft_source(const std::string& word, EngineOptions&, const ModelFile&, bool quiet);

struct DraftSpeed {
  std::string from;
  std::vector<double> plain, drafted;  // tokens per second, one per repetition
  std::vector<double> ratio;           // of the two
  DraftCounts counts;                  // of the repetitions
};

// Tokens of the prompt that the text goes on from: a few random ones, repeated.
inline constexpr int kDraftPrompt = 64;

// Greedy, `generate` tokens, stop tokens passed over; the first repetition is for warming up, and for the
// draft length to find out what rows cost. Errors: the model's; Failed where the two texts differ, which
// would be a defect of gimbal.
Result<DraftSpeed> bench_drafts(Model&, const DraftSource&, int generate, int repetitions);

Json as_json(const DraftSpeed&);
void add_rows(Table&, const DraftSpeed&);

}  // namespace gimbal
