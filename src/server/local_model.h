// A model that this process computes, with an engine and a scheduler of its own.
#pragma once
#include "engine/engine.h"
#include "server/computed_model.h"
#include "workers/load.h"
#include "workers/promised_memory.h"

namespace gimbal {

struct ServingOptions {
  EngineOptions engine;
  int parallel = kTextsAtOnce;  // requests of a model
  // Of KV cache for all of them; 0: what the devices have free (runtime/cache_size.h), at least a context and
  // at most one for each.
  int64_t cache_tokens = 0;
  int models = 1;                // that share the devices
  int together = 1;              // CacheWish::together
  std::string draft = "off";     // where drafts of answers come from (engine/drafts.h)
  bool embeddings_only = false;  // of a model that generates text, too
  SchedulerOptions scheduler = {};
  std::function<void(const ModelPlan&)> planned = {};  // how texts are generated; called when it is loaded
  // Of all models that this process computes. nullptr: engine.run.promised says what others take.
  std::shared_ptr<PromisedMemory> memory = nullptr;
};

// Errors: those of open_drafts, Engine::load and Scheduler::create.
Result<ServedModelPtr> load_local_model(Registry& registry, std::string id, const ModelFile& source,
                                        const ServingOptions& options, const EventSink& events);

}  // namespace gimbal
