// Where the drafts of a model come from, by one word of a user.
#pragma once
#include <functional>

#include "engine/engine.h"
#include "runtime/drafting.h"

namespace gimbal {

// How many tokens are drafted at most by this word: "off" (or nothing), "auto", "ngram", "mtp" (by the file's
// own layers for it), or a model (engine/find_model.h).
int drafts_at_most(const std::string& word);

// Members are in the order in which they depend on each other.
struct Drafts {
  std::unique_ptr<Engine> engine;  // of the model that drafts; nullptr: there is none
  LoadedModelPtr model;            // likewise
  // One for a text of its own; nullptr: the model was loaded for fewer texts, or its device is lost. Empty:
  // off.
  std::function<std::unique_ptr<Drafter>()> drafter = {};
  Drafting::Failed failed = {};             // what all of them tell
  std::unique_ptr<Drafting> drafting = {};  // of one text after the other; nullptr: off, or for more texts
  bool lost = false;
};

// Sets what the model must be loaded with that is drafted for: `options`.run.drafts and states. "auto" is the
// file's own layers where it has them, else n-grams, which cost nothing to try. A model that drafts is loaded
// with the options of the other, but for where layers are asked to be, and with its context. That one is
// loaded afterwards, so that its placement and its check of memory know what is left. `texts` can have drafts
// of a model at once. Under strict a text ends when its drafts fail. Errors: those of open_model_file and
// Engine::load; Usage for "mtp" without such layers, and for a model with another vocabulary, with the first
// token that differs.
Result<std::unique_ptr<Drafts>> open_drafts(Registry& registry, EngineOptions& options,
                                            const ModelFile& drafts_for, const std::string& word,
                                            const EventSink& events, int texts = 1);

// What open_drafts() would load, as Engine::plan() tells it; nullptr: nothing. Sets the same, and
// `options`.run.beside. Errors: as open_drafts().
Result<std::unique_ptr<PlannedModel>> plan_drafts(Registry& registry, EngineOptions& options,
                                                  const ModelFile& drafts_for, const std::string& word,
                                                  const EventSink& events);

}  // namespace gimbal
