// Chooses the source of a model's drafts from one word of the user.
#pragma once
#include <functional>
#include <optional>

#include "engine/engine.h"
#include "model/draft_head.h"
#include "runtime/drafting.h"

namespace gimbal {

// The largest number of tokens to draft with this word: "off" (or empty), "auto", "ngram", "mtp" (the
// file's own layers for it), or a smaller model or a draft head (engine/find_model.h).
int drafts_at_most(const std::string& word);

// Each member may depend on those before it.
struct Drafts {
  std::unique_ptr<Engine> engine;  // of the draft model; nullptr: none
  LoadedModelPtr model;            // likewise
  std::optional<DraftHead> head;  // that the draft model is; nullopt: another model, or the file's own layers
  // Returns a drafter for one text; nullptr: all of the loaded model's sequences are in use, or its device
  // is lost. Empty: off.
  std::function<std::unique_ptr<Drafter>()> drafter = {};
  Drafting::Failed failed = {};             // called by each drafter that fails
  std::unique_ptr<Drafting> drafting = {};  // for one text at a time; nullptr: off, or several texts
  bool lost = false;
};

// Sets the load options of the model that gets drafts: `options`.run.drafts and states. "auto" uses the
// file's own layers if it has them, else n-grams, which cost nothing to try. A draft model is loaded with
// the same options and context, without the options that place layers. Load the main model afterwards, so
// that its placement and memory check see the remaining memory. `texts`: texts that can have drafts of a
// model at once. Under strict a text ends when its drafts fail. Errors: those of open_model_file and
// Engine::load; Usage for "mtp" without such layers, and for a draft model with another vocabulary, naming
// the first differing token.
Result<std::unique_ptr<Drafts>> open_drafts(Registry& registry, EngineOptions& options,
                                            const ModelFile& drafts_for, const std::string& word,
                                            const EventSink& events, int texts = 1);

// The plan of the model that open_drafts() would load, as from Engine::plan(); nullptr: none. Sets the
// same, and `options`.run.beside. Errors: as open_drafts().
Result<std::unique_ptr<PlannedModel>> plan_drafts(Registry& registry, EngineOptions& options,
                                                  const ModelFile& drafts_for, const std::string& word,
                                                  const EventSink& events);

}  // namespace gimbal
