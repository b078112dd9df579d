// gimbal bench --draft: generates the same text without and with drafts, alternately.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/terminal.h"
#include "base/json_fwd.h"
#include "engine/drafts.h"

namespace gimbal {

// The value of --draft: "scripted:P", or a source as for `gimbal run`.
struct DraftSource {
  std::optional<double> scripted;  // probability of a correct guess
  std::unique_ptr<Drafts> drafts;  // if not scripted
};
// Sets the options to load the model with. Errors: Usage for an invalid P; those of open_drafts().
Result<DraftSource> open_draft_source(const std::string& word, EngineOptions&, const ModelFile&, bool quiet);

struct DraftSpeed {
  std::string from;
  std::vector<double> plain, drafted;  // tokens per second, one per repetition
  std::vector<double> ratio;           // of the two
  DraftCounts counts;                  // of the repetitions
};

// Prompt length in tokens: a few random ones, repeated.
inline constexpr int kDraftPrompt = 64;

// Generates `generate` tokens greedily, ignoring stop tokens. The first repetition is a warm-up, in which
// the draft length also learns the cost of rows. Errors: the model's; Failed if the two texts differ, which
// would be a bug of gimbal.
Result<DraftSpeed> bench_drafts(Model&, const DraftSource&, int generate, int repetitions);

Json as_json(const DraftSpeed&);
void add_rows(Table&, const DraftSpeed&);

}  // namespace gimbal
