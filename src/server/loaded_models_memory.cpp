// When models are loaded, loaded again with a larger context, and unloaded.
#include <algorithm>

#include "model/arch.h"
#include "runtime/model_plan.h"
#include "server/loaded_models_impl.h"

namespace gimbal {
namespace {

constexpr double kRetryBeside = 10;  // seconds until a larger context is tried again beside running answers

}  // namespace

Result<ServedModelPtr> LoadedModels::get_for(const std::string& id, int64_t context) {
  auto found = find(id);
  if (!found) return found.error();
  Entry& e = *found->entry;
  if (auto ok = open(e); !ok) return ok.error();
  if (found->preset) context = std::max(context, found->preset->context());
  int wanted = 0;
  if (context > 0 && options_.grows && options_.grows(e.id)) {
    const auto config = configure(*e.source.file);
    if (config) wanted = int(std::min<int64_t>(context, config->context));
    if (config && wanted <= default_context(*config)) wanted = 0;  // the server's own is enough
  }
  const auto under_this_name = [&](const ServedModelPtr& it) -> Result<ServedModelPtr> {
    {
      const std::lock_guard lock(e.mutex);
      e.as = {nullptr, found->id, found->preset};
    }
    if (found->id == it->id() && !found->preset) return it;
    return named_model(it, found->id, found->preset);
  };
  if (auto there = e.loaded(); there && there->context() >= wanted) return under_this_name(there);
  const std::lock_guard loading(e.loading);
  if (auto there = e.loaded()) {
    if (there->context() >= wanted || wanted >= e.too_large || now() < e.no_retry_until)
      return under_this_name(there);
    there.reset();
    auto grown = grow(e, wanted);
    if (!grown) return grown.error();
    return under_this_name(*grown);
  }
  auto made = load(e, wanted < e.too_large ? wanted : 0);
  if (!made && wanted > 0 && wanted < e.too_large && made.error().code == Code::OutOfMemory) {
    e.too_large = wanted;
    made = load(e, 0);
  }
  if (!made) return made.error();
  return under_this_name(*made);
}

// The caller holds `loading`. `context`: 0, or larger than the server's own.
Result<ServedModelPtr> LoadedModels::load(Entry& e, int context) {
  for (;;) {
    auto made = options_.load(e.id, e.source, context);
    if (!made) {
      // Unloads the least recently used model to make room.
      if (made.error().code == Code::OutOfMemory && make_room()) continue;
      return made.error();
    }
    if ((*made)->context() < context) e.too_large = context;
    const std::lock_guard lock(e.mutex);
    e.served = Alive::hold(alive_, std::move(*made));
    e.used = now();
    return e.served;
  }
}

// Loads it again with a larger context. If that fails, it stays as it was.
Result<ServedModelPtr> LoadedModels::grow(Entry& e, int context) {
  std::optional<double> stays;
  {
    const std::lock_guard lock(e.mutex);
    stays = e.stays;
  }
  const uint64_t before = alive_->count();
  if (give_back(e)) {
    wait_for_end(before);
    auto made = load(e, context);
    if (!made) {
      e.too_large = context;
      made = load(e, 0);
    }
    const std::lock_guard lock(e.mutex);
    e.stays = stays;
    return made;
  }
  // Answers are running: the new one is loaded beside, and the old one ends with them.
  auto made = options_.load(e.id, e.source, context);
  if (made && (*made)->context() < context) e.too_large = context;
  const std::lock_guard lock(e.mutex);
  if (made) {
    const std::lock_guard counting(past_mutex_);
    if (e.served)
      for (const SchedulerNumbers& n : e.served->numbers()) past_ += n.past();
    e.served = Alive::hold(alive_, std::move(*made));
  } else {
    e.no_retry_until = now() + kRetryBeside;
  }
  e.used = now();
  if (!e.served) return made.error();
  return e.served;
}

void LoadedModels::wait_for_end(uint64_t before) {
  std::unique_lock lock(alive_->mutex);
  alive_->changed.wait_for(lock, std::chrono::seconds(5), [&] { return alive_->ended > before; });
}

// One model less, and its memory is free. False: none can be given back.
bool LoadedModels::make_room() {
  const uint64_t before = alive_->count();
  EntryPtr oldest;
  double since = 0;
  for (const EntryPtr& e : entries()) {
    const std::lock_guard unused(e->mutex);
    if (e->served && e->served.use_count() == 1 && (!oldest || e->used < since)) oldest = e, since = e->used;
  }
  if (!oldest) return false;
  give_back(*oldest);
  wait_for_end(before);
  return true;
}

// False: it is used, or not loaded.
bool LoadedModels::give_back(Entry& e) {
  ServedModelPtr last;
  {
    const std::lock_guard lock(e.mutex);
    if (!e.served || e.served.use_count() > 1) return false;
    last = std::move(e.served);
    e.stays.reset();
    // Counted before a report can miss it.
    const std::lock_guard counting(past_mutex_);
    for (const SchedulerNumbers& n : last->numbers()) past_ += n.past();
  }
  return true;  // and it is gone with `last`
}

void LoadedModels::stay(const std::string& id, std::optional<double> seconds) {
  auto found = find(id);
  if (!found) return;
  Entry& e = *found->entry;
  {
    const std::lock_guard lock(e.mutex);
    e.stays = seconds;
  }
  if (seconds == 0.0) give_back(e);
}

void LoadedModels::tidy() {
  for (const EntryPtr& e : entries()) {
    {
      const std::lock_guard lock(e->mutex);
      // Only here, once a second: reports hold models for a moment, too, and must not keep them loaded.
      if (e->served.use_count() > 1) e->used = now();
      const auto left = e->left(options_.keep_alive);
      if (!e->served || !left || *left > 0) continue;
    }
    give_back(*e);
  }
}

}  // namespace gimbal
