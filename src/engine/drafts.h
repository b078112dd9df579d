// Where the drafts of a model come from, by one word of a user.
#pragma once
#include "engine/engine.h"
#include "runtime/drafting.h"

namespace gimbal {

// What EngineOptions::run.drafts must be for this word, before the model is planned: "off" (or nothing),
// "auto", "ngram", or a model (engine/find_model.h).
int drafts_at_most(const std::string& word);

// Members are in the order in which they depend on each other.
struct Drafts {
  std::unique_ptr<Engine> engine;      // of the model that drafts; nullptr: there is none
  LoadedModelPtr model;                // likewise
  std::unique_ptr<Drafting> drafting;  // nullptr: off
};

// "auto" is n-grams: they cost nothing to try. A model is loaded with the options of the one that it drafts
// for, but for where layers are asked to be, and with its context. That one is loaded afterwards, so that its
// placement and its check of memory know what is left. Errors: those of open_model_file and Engine::load;
// Usage for a model with another vocabulary, with the first token that differs.
Result<std::unique_ptr<Drafts>> open_drafts(Registry& registry, const EngineOptions& options,
                                            const ModelFile& drafts_for, const std::string& word,
                                            const EventSink& events);

}  // namespace gimbal
