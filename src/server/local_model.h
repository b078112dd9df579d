// A model that this process computes, with an engine and a scheduler of its own.
#pragma once
#include "engine/engine.h"
#include "scheduler/scheduler.h"
#include "server/model.h"

namespace gimbal {

struct ServingOptions {
  EngineOptions engine;
  int parallel = 64;             // requests of a model at once
  int64_t cache_tokens = 0;      // of KV cache for all of them; 0: default_cache_tokens()
  std::string draft = "off";     // where drafts of answers come from (engine/drafts.h)
  bool embeddings_only = false;  // of a model that generates text, too
  SchedulerOptions scheduler = {};
};

// A whole context for each request, but at most 32768 tokens in all, or 4 contexts where these are more.
int64_t default_cache_tokens(int context, int parallel);

// Errors: those of open_drafts, Engine::load and Scheduler::create.
Result<ServedModelPtr> load_local_model(Registry& registry, std::string id, const ModelFile& source,
                                        const ServingOptions& options, const EventSink& events);

}  // namespace gimbal
