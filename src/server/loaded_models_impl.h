// Shared by the two halves of LoadedModels: names (loaded_models.cpp) and memory (loaded_models_memory.cpp).
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "server/loaded_models.h"
#include "server/named_model.h"

namespace gimbal {

struct LoadedModels::Entry {
  std::string id;
  bool at_start = false;  // one of create()
  std::vector<std::string> aliases;
  int64_t created = 0;
  uint64_t device = 0, inode = 0;  // of the file; 0: none, or unknown
  std::mutex opening;              // of the next member
  ModelFile source;                // without a file until it is needed
  std::mutex digesting;            // of the next member
  std::string digest;
  std::mutex loading;         // one at a time; then `mutex`
  int too_large = INT32_MAX;  // contexts that cannot be loaded
  double no_retry_until = 0;
  std::mutex mutex;  // of the following members
  ServedModelPtr served;
  Named as = {};  // the name that the last request gave
  double used = 0;
  std::optional<double> stays;  // as stay() says

  // Seconds until it is unloaded if no request comes; nothing: never. The caller holds the mutex.
  std::optional<double> left(double keep_alive) const {
    const double limit = stays.value_or(keep_alive > 0 ? keep_alive : -1);
    if (limit < 0) return {};
    return std::max(0.0, used + limit - now());
  }

  bool is(const LibraryModel& m) const {
    if (m.path.empty() || source.path.empty()) return m.path == source.path;
    return (inode != 0 && inode == m.inode && device == m.device) || (at_start && source.path == m.path);
  }

  ServedModelPtr loaded() {
    const std::lock_guard lock(mutex);
    if (served) used = now();
    return served;
  }

  // Under its last name.
  ServedModelPtr named() {
    ServedModelPtr it;
    std::string name;
    std::shared_ptr<const ModelPreset> preset;
    {
      const std::lock_guard lock(mutex);
      it = served, name = as.id, preset = as.preset;
    }
    if (!it || name.empty() || (name == it->id() && !preset)) return it;
    auto made = named_model(it, name, preset);
    return made ? *made : it;
  }
};

// The last owner of a model may be a request that the model's own engine ends. Its thread cannot join
// itself, so another thread destroys the model. The server's end waits for all of these.
struct LoadedModels::Alive {
  std::mutex mutex;
  std::condition_variable changed;
  int models = 0;
  uint64_t ended = 0;

  static ServedModelPtr hold(const std::shared_ptr<Alive>& all, ServedModelPtr model) {
    {
      const std::lock_guard lock(all->mutex);
      all->models++;
    }
    ServedModel* const it = model.get();
    return {it, [all, model = std::move(model)](ServedModel*) mutable {
              std::thread([all, model = std::move(model)]() mutable {
                model.reset();
                const std::lock_guard lock(all->mutex);
                all->models--, all->ended++;
                all->changed.notify_all();
              }).detach();
            }};
  }
  uint64_t count() {
    const std::lock_guard lock(mutex);
    return ended;
  }
};

}  // namespace gimbal
