#include "server/loaded_models_impl.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "base/sha256.h"
#include "base/text.h"
#include "huggingface/folder.h"

namespace gimbal {
namespace {

// "tiny-q8_0" of "/models/tiny-q8_0.gguf": no path leaves this machine.
std::string id_of(const ModelFile& f) {
  std::string id =
      f.path.empty() || f.name.find('/') == f.name.npos ? f.name : f.name.substr(f.name.rfind('/') + 1);
  if (id.ends_with(".gguf") || id.ends_with(".GGUF")) id.resize(id.size() - 5);
  return id;
}

Error no_such_model(const std::string& id) {
  return {Code::NotFound, format("there is no model '{}'", id), "", reason::kNoSuchModel, "model", id};
}

// Of a blob in the cache of Hugging Face or Ollama, whose name is its hash; else empty.
std::string digest_in_name(const std::string& path) {
  std::error_code e;
  std::string name = std::filesystem::canonical(path, e).filename().string();
  if (name.starts_with("sha256-")) name.erase(0, 7);
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos ? name : "";
}

}  // namespace

LoadedModels::LoadedModels(Options o) : options_(std::move(o)), alive_(std::make_shared<Alive>()) {}

LoadedModels::~LoadedModels() {
  entries_.clear();
  std::unique_lock lock(alive_->mutex);
  alive_->changed.wait_for(lock, std::chrono::seconds(5), [&] { return alive_->models == 0; });
}

Result<std::unique_ptr<LoadedModels>> LoadedModels::create(std::vector<ModelFile> files, Options options) {
  std::vector<std::string> names = std::move(options.names);
  std::unique_ptr<LoadedModels> self(new LoadedModels(std::move(options)));
  for (ModelFile& f : files) {
    auto e = std::make_shared<Entry>();
    e->id = names.empty() ? id_of(f) : names.front();
    e->aliases = std::exchange(names, {});
    e->at_start = true;
    if (self->named_at_start(e->id))
      return Error{Code::Usage,
                   format("two models would have the name '{}'", e->id),
                   "rename one of the files",
                   "",
                   "model",
                   e->id};
    struct stat s {};
    e->created = int64_t(std::time(nullptr));
    if (!f.path.empty() && stat(f.path.c_str(), &s) == 0) {
      e->created = int64_t(s.st_mtime);
      e->device = uint64_t(s.st_dev), e->inode = uint64_t(s.st_ino);
    }
    e->source = std::move(f);
    self->entries_.push_back(std::move(e));
  }
  return self;
}

std::vector<LoadedModels::EntryPtr> LoadedModels::entries() const {
  const std::lock_guard lock(entries_mutex_);
  return entries_;
}

LoadedModels::EntryPtr LoadedModels::named_at_start(const std::string& id) const {
  for (const EntryPtr& e : entries())
    if (e->at_start && (e->id == id || e->id + ":latest" == id ||
                        std::find(e->aliases.begin(), e->aliases.end(), id) != e->aliases.end()))
      return e;
  return nullptr;
}

// Names of one file share its weights. A file in place of another one is loaded anew.
LoadedModels::EntryPtr LoadedModels::entry_of(const LibraryModel& m) {
  EntryPtr outdated;
  EntryPtr found = [&] {
    const std::lock_guard lock(entries_mutex_);
    for (const EntryPtr& e : entries_)
      if (e->is(m)) return e;
    for (const EntryPtr& e : entries_)
      if (!e->at_start && e->source.path == m.path) outdated = e;
    std::erase(entries_, outdated);
    auto e = std::make_shared<Entry>();
    e->id = m.id, e->created = m.modified, e->device = m.device, e->inode = m.inode;
    e->source.name = m.id, e->source.path = m.path;
    entries_.push_back(e);
    return e;
  }();
  if (outdated) give_back(*outdated);
  return found;
}

Result<LoadedModels::Named> LoadedModels::find(const std::string& id) {
  if (EntryPtr e = named_at_start(id)) {
    std::string name = e->id;
    auto preset = options_.preset ? options_.preset(name) : nullptr;
    return Named{std::move(e), std::move(name), std::move(preset)};
  }
  if (!options_.library) return no_such_model(id);
  auto found = options_.library->find(id);
  if (!found) return found.error();
  auto preset = found->preset;
  if (!preset && options_.preset) preset = options_.preset(found->id);
  return Named{entry_of(*found), found->id, std::move(preset)};
}

Status LoadedModels::open(Entry& e) {
  const std::lock_guard lock(e.opening);
  if (e.source.file) return Done{};
  auto file = options_.open(e.source.path);
  if (!file) return file.error();
  e.source.file = std::move(file->file);
  return Done{};
}

std::vector<KnownModel> LoadedModels::list() {
  std::vector<KnownModel> all;
  const auto add = [&](KnownModel m, Entry& e) {
    const std::lock_guard lock(e.mutex);
    m.loaded = e.served && (e.as.id.empty() ? e.id : e.as.id) == m.id;
    if (m.loaded) {
      m.device_bytes = e.served->device_bytes(), m.context = e.served->context();
      for (const DeviceUse& d : e.served->devices()) m.gpu_bytes += d.host ? 0 : d.bytes;
      m.stays = e.left(options_.keep_alive);
    }
    all.push_back(std::move(m));
  };
  const std::vector<EntryPtr> known = entries();
  for (const EntryPtr& e : known)
    if (e->at_start) {
      KnownModel m{e->id, e->source.path, e->source.file->file_bytes(), e->created};
      m.aliases = e->aliases;
      add(std::move(m), *e);
    }
  if (!options_.library) return all;
  const auto first = [&](const std::string& id) {
    return std::any_of(known.begin(), known.end(), [&](auto& e) { return e->at_start && e->id == id; });
  };
  for (const LibraryModel& m : options_.library->list()) {
    if (first(m.id)) continue;
    KnownModel k{m.id, m.path, m.bytes, m.modified};
    const auto e = std::find_if(known.begin(), known.end(), [&](auto& o) { return o->is(m); });
    if (e != known.end()) add(std::move(k), **e);
    else all.push_back(std::move(k));
  }
  return all;
}

Result<std::shared_ptr<const ModelSource>> LoadedModels::file(const std::string& id) {
  auto found = find(id);
  if (!found) return found.error();
  if (auto ok = open(*found->entry); !ok) return ok.error();
  return found->entry->source.file;
}

std::string LoadedModels::digest(const std::string& id) {
  auto found = find(id);
  if (!found) return {};
  Entry& e = *found->entry;
  const std::lock_guard lock(e.digesting);
  if (!e.digest.empty()) return e.digest;
  if (!e.at_start) return e.digest = digest_in_name(e.source.path);
  Sha256 sum;
  if (e.source.path.empty()) {
    sum.add({reinterpret_cast<const char*>(options_.inside.data()), options_.inside.size()});
  } else {
    const auto files = files_of_model(e.source.path);
    if (!files) return {};
    for (const std::string& path : *files) {
      FILE* file = std::fopen(path.c_str(), "rb");
      if (!file) return {};
      std::string piece(1 << 20, '\0');
      while (const size_t n = std::fread(piece.data(), 1, piece.size(), file)) sum.add({piece.data(), n});
      const bool whole = !std::ferror(file);
      std::fclose(file);
      if (!whole) return {};
    }
  }
  return e.digest = sum.hex();
}

std::vector<ServedModelPtr> LoadedModels::loaded() {
  std::vector<ServedModelPtr> all;
  for (const EntryPtr& e : entries())
    if (auto it = e->named()) all.push_back(std::move(it));
  return all;
}

Result<LibraryModel> LoadedModels::describe(const std::string& id) {
  auto found = find(id);
  if (!found) return found.error();
  LibraryModel m;
  m.id = found->id, m.path = found->entry->source.path, m.preset = found->preset;
  return m;
}

std::optional<std::string> LoadedModels::name_of(const std::string& id) {
  auto found = find(id);
  return found ? std::optional(found->id) : std::nullopt;
}

Status LoadedModels::remove(const std::string& id) {
  if (!options_.library) return no_such_model(id);
  if (named_at_start(id))
    return Error{Code::Usage, format("the server was started with {}", gimbal::quoted(id)),
                 "start it without this model", reason::kNotOurs};
  auto found = find(id);
  if (!found) return found.error();
  if (auto ok = options_.library->remove(id); !ok) return ok;
  EntryPtr e = found->entry;
  {
    const std::lock_guard lock(e->mutex);
    if (e->as.id == found->id) e->as = {};
  }
  std::error_code ignored;
  if (e->at_start || std::filesystem::exists(e->source.path, ignored)) return Done{};
  {
    const std::lock_guard lock(entries_mutex_);
    std::erase(entries_, e);
  }
  give_back(*e);
  return Done{};
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

}  // namespace gimbal
