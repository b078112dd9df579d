#include "server/loaded_models.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/format.h"
#include "base/sha256.h"

namespace gimbal {
namespace {

// "tiny-q8_0" of "/models/tiny-q8_0.gguf": no path leaves this machine.
std::string id_of(const ModelFile& f) {
  std::string id =
      f.path.empty() || f.name.find('/') == f.name.npos ? f.name : f.name.substr(f.name.rfind('/') + 1);
  if (id.ends_with(".gguf") || id.ends_with(".GGUF")) id.resize(id.size() - 5);
  return id;
}

}  // namespace

struct LoadedModels::Entry {
  std::string id, name;  // `name`: as it was named at the start
  ModelFile source;
  int64_t created = 0;
  std::mutex digesting;  // of the next one
  std::string digest;
  std::mutex loading;  // one at a time; then `mutex`
  std::mutex mutex;    // guards the members below
  ServedModelPtr served;
  double used = 0;
  std::optional<double> stays;  // set by stay()

  // Seconds until it is unloaded if no request comes; nothing: never. The caller holds the mutex.
  std::optional<double> left(double keep_alive) const {
    const double limit = stays.value_or(keep_alive > 0 ? keep_alive : -1);
    if (limit < 0) return {};
    return std::max(0.0, used + limit - now());
  }

  ServedModelPtr loaded() {
    const std::lock_guard lock(mutex);
    if (served) used = now();
    return served;
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
};

LoadedModels::LoadedModels(double keep_alive, Load load, Bytes inside)
    : keep_alive_(keep_alive), load_(std::move(load)), inside_(inside), alive_(std::make_shared<Alive>()) {}

LoadedModels::~LoadedModels() {
  entries_.clear();
  std::unique_lock lock(alive_->mutex);
  alive_->changed.wait_for(lock, std::chrono::seconds(5), [&] { return alive_->models == 0; });
}

Result<std::unique_ptr<LoadedModels>> LoadedModels::create(std::vector<ModelFile> files, double keep_alive,
                                                           Load load, Bytes inside) {
  std::unique_ptr<LoadedModels> self(new LoadedModels(keep_alive, std::move(load), inside));
  for (ModelFile& f : files) {
    auto e = std::make_unique<Entry>();
    e->id = id_of(f);
    e->name = f.name;
    if (self->find(e->id))
      return Error{Code::Usage,
                   format("two models would have the name '{}'", e->id),
                   "rename one of the files",
                   "",
                   "model",
                   e->id};
    struct stat s {};
    e->created =
        !f.path.empty() && stat(f.path.c_str(), &s) == 0 ? int64_t(s.st_mtime) : int64_t(std::time(nullptr));
    e->source = std::move(f);
    self->entries_.push_back(std::move(e));
  }
  return self;
}

LoadedModels::Entry* LoadedModels::find(const std::string& id) {
  for (const auto& e : entries_)
    if (e->id == id || e->id + ":latest" == id) return e.get();
  return nullptr;
}

std::vector<KnownModel> LoadedModels::list() {
  std::vector<KnownModel> all;
  for (const auto& e : entries_) {
    const std::lock_guard lock(e->mutex);
    KnownModel m{e->id, e->source.path, e->source.file->file_bytes(), e->created, e->served != nullptr};
    if (e->served) {
      m.device_bytes = e->served->device_bytes(), m.context = e->served->context();
      for (const DeviceUse& d : e->served->devices()) m.gpu_bytes += d.host ? 0 : d.bytes;
      m.stays = e->left(keep_alive_);
    }
    all.push_back(std::move(m));
  }
  return all;
}

Result<ServedModelPtr> LoadedModels::get(const std::string& id) {
  Entry* e = find(id);
  if (!e)
    return Error{Code::NotFound, format("there is no model '{}'", id), "", reason::kNoSuchModel, "model", id};
  if (auto there = e->loaded()) return there;
  const std::lock_guard loading(e->loading);
  if (auto there = e->loaded()) return there;
  for (;;) {
    auto made = load_(e->id, e->source);
    if (!made) {
      // Unloads the least recently used model to make room.
      if (made.error().code == Code::OutOfMemory && make_room()) continue;
      return made.error();
    }
    const std::lock_guard lock(e->mutex);
    e->served = Alive::hold(alive_, std::move(*made));
    e->used = now();
    return e->served;
  }
}

// One model less, and its memory is free. False: none can be given back.
bool LoadedModels::make_room() {
  std::unique_lock lock(alive_->mutex);
  const uint64_t before = alive_->ended;
  lock.unlock();
  Entry* oldest = nullptr;
  double since = 0;
  for (const auto& e : entries_) {
    const std::lock_guard unused(e->mutex);
    if (e->served && e->served.use_count() == 1 && (!oldest || e->used < since))
      oldest = e.get(), since = e->used;
  }
  if (!oldest) return false;
  give_back(*oldest);
  lock.lock();
  alive_->changed.wait_for(lock, std::chrono::seconds(5), [&] { return alive_->ended > before; });
  return true;
}

Result<std::shared_ptr<const ModelSource>> LoadedModels::file(const std::string& id) {
  Entry* e = find(id);
  if (!e)
    return Error{Code::NotFound, format("there is no model '{}'", id), "", reason::kNoSuchModel, "model", id};
  return e->source.file;
}

std::string LoadedModels::digest(const std::string& id) {
  Entry* e = find(id);
  if (!e) return {};
  const std::lock_guard lock(e->digesting);
  if (e->digest.empty()) {
    Sha256 sum;
    if (e->source.path.empty()) {
      sum.add({reinterpret_cast<const char*>(inside_.data()), inside_.size()});
    } else {
      FILE* file = std::fopen(e->source.path.c_str(), "rb");
      if (!file) return {};
      std::string piece(1 << 20, '\0');
      while (const size_t n = std::fread(piece.data(), 1, piece.size(), file)) sum.add({piece.data(), n});
      const bool whole = !std::ferror(file);
      std::fclose(file);
      if (!whole) return {};
    }
    e->digest = sum.hex();
  }
  return e->digest;
}

std::vector<ServedModelPtr> LoadedModels::loaded() {
  std::vector<ServedModelPtr> all;
  for (const auto& e : entries_) {
    const std::lock_guard lock(e->mutex);
    if (e->served) all.push_back(e->served);
  }
  return all;
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
  Entry* e = find(id);
  if (!e) return;
  {
    const std::lock_guard lock(e->mutex);
    e->stays = seconds;
  }
  if (seconds == 0.0) give_back(*e);
}

SchedulerNumbers LoadedModels::past() {
  const std::lock_guard lock(past_mutex_);
  return past_;
}

Status LoadedModels::renew() {
  const std::lock_guard one_at_a_time(renewing_);
  Status ok = Done{};
  for (const ServedModelPtr& model : loaded())
    if (Status renewed = model->renew(); !renewed && ok) ok = renewed;
  return ok;
}

void LoadedModels::tidy() {
  for (const auto& e : entries_) {
    {
      const std::lock_guard lock(e->mutex);
      // Only here, once a second: reports hold models for a moment, too, and must not keep them loaded.
      if (e->served.use_count() > 1) e->used = now();
      const auto left = e->left(keep_alive_);
      if (!e->served || !left || *left > 0) continue;
    }
    give_back(*e);
  }
}

}  // namespace gimbal
