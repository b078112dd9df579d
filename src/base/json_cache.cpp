// cold: compiled for size
#include "base/json_cache.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {
namespace {

constexpr size_t kMaxBytes = 1 << 22;

bool has_key(const Json& entry, const Json& key) {
  return entry.is_object() && entry.contains("key") && entry["key"] == key;
}

}  // namespace

JsonCache::JsonCache(std::string path, const char* list, size_t max_entries, int64_t max_seconds)
    : path_(std::move(path)),
      list_(list),
      max_entries_(max_entries),
      max_seconds_(max_seconds),
      entries_(std::make_unique<Json>(Json::array())) {}

JsonCache::~JsonCache() = default;

void JsonCache::load() {
  std::error_code e;
  if (std::exchange(loaded_, true) || path_.empty() || !std::filesystem::exists(path_, e)) return;
  auto text = read_file(path_, kMaxBytes);
  Json found = text ? parse_json(*text) : Json();
  if (found.is_object() && found.contains(list_) && found[list_].is_array())
    *entries_ = std::move(found[list_]);
  else
    damage_ =
        text ? format("'{}' is damaged: it is not a cache file of gimbal", path_) : text.error().message;
}

const std::string& JsonCache::damage() { return load(), damage_; }

const Json& JsonCache::find(const Json& key) {
  static const Json none;
  load();
  const auto e =
      std::find_if(entries_->begin(), entries_->end(), [&](const Json& x) { return has_key(x, key); });
  if (e == entries_->end()) return none;
  if (max_seconds_ == 0) return *e;
  const int64_t now = std::time(nullptr);
  const int64_t when =
      e->contains("when") && (*e)["when"].is_number_integer() ? (*e)["when"].get<int64_t>() : -1;
  return when >= 0 && when <= now && now - when <= max_seconds_ ? *e : none;
}

bool JsonCache::remove(const Json& key) {
  load();
  const size_t before = entries_->size();
  entries_->erase(std::remove_if(entries_->begin(), entries_->end(),
                                 [&](const Json& e) { return !e.is_object() || has_key(e, key); }),
                  entries_->end());
  return entries_->size() != before;
}

Status JsonCache::put(const Json& key, Json entry) {
  remove(key);
  entry["key"] = key, entry["when"] = int64_t(std::time(nullptr));
  entries_->push_back(std::move(entry));
  while (entries_->size() > max_entries_) entries_->erase(entries_->begin());
  return write();
}

Status JsonCache::erase(const Json& key) { return remove(key) ? write() : Done{}; }

Status JsonCache::write() const {
  if (path_.empty()) return Done{};
  return replace_file(path_,
                      Json{{list_, *entries_}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string text_in(const Json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace gimbal
