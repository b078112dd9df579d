// A model computed by this process, with its own engine and scheduler.
#pragma once
#include "engine/engine.h"
#include "server/computed_model.h"
#include "workers/load.h"
#include "workers/memory_reservations.h"

namespace gimbal {

struct ServingOptions {
  EngineOptions engine;
  int parallel = kTextsAtOnce;  // concurrent requests per model
  // KV cache for all requests; 0: the devices' free memory (runtime/memory_check.h), at least one context and
  // at most one per request.
  int64_t cache_tokens = 0;
  int models = 1;                // number that share the devices
  int together = 1;              // CacheBudget::together
  std::string draft = "off";     // source of drafts (engine/drafts.h)
  std::string mmproj = {};       // its projector file; empty: it takes no pictures
  bool embeddings_only = false;  // also for a model that can generate text
  SchedulerOptions scheduler = {};
  // The prefix store of this process; nullptr: none.
  std::shared_ptr<PageStore> pages = nullptr;
  std::string salt = {};                               // salt_digest() of its keys
  std::vector<Lora> lora = {};                         // the adapters that the model was opened with
  std::function<void(const ModelPlan&)> planned = {};  // called on loading, with the generation plan
  // Shared by all models of this process. nullptr: engine.run.promised has the memory promised to others.
  std::shared_ptr<MemoryReservations> memory = nullptr;
};

// Errors: those of open_drafts, Engine::load and SchedulerThread::create.
Result<ServedModelPtr> load_local_model(Registry& registry, std::string id, const ModelFile& source,
                                        const ServingOptions& options, const EventSink& events);

}  // namespace gimbal
