// The models of a server, each with an engine and a scheduler of its own: loaded when they are asked for, and
// given back when nobody did for a while.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "scheduler/scheduler.h"
#include "server/model.h"

namespace gimbal {

struct ServingOptions {
  EngineOptions engine;
  int parallel = 64;         // requests of a model at once
  int64_t cache_tokens = 0;  // of KV cache for all of them; 0: default_cache_tokens()
  double keep_alive = 0;     // seconds that a model stays loaded without a request; 0: for ever
  SchedulerOptions scheduler = {};
};

// A whole context for each request, but at most 32768 tokens in all, or 4 contexts where these are more.
int64_t default_cache_tokens(int context, int parallel);

class LoadedModels final : public Models {
 public:
  // Nothing is loaded yet. Errors: Usage when two files would have the same name.
  static Result<std::unique_ptr<LoadedModels>> create(Registry& registry, std::vector<ModelFile> files,
                                                      ServingOptions options, EventSink events);
  ~LoadedModels() override;

  std::vector<KnownModel> list() override;
  Result<ServedModelPtr> get(const std::string& id) override;
  Result<std::shared_ptr<const Gguf>> file(const std::string& id) override;
  std::string digest(const std::string& id) override;
  // The sum over the models that are loaded.
  std::vector<SchedulerNumbers> numbers();
  // Gives back what nobody has asked for since `keep_alive` seconds.
  void tidy();

 private:
  struct Entry;
  LoadedModels(Registry& registry, ServingOptions options, EventSink events);
  Entry* find(const std::string& id);
  bool give_back(double unused_for);

  Registry& registry_;
  const ServingOptions options_;
  const EventSink events_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace gimbal
