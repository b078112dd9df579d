#include "engine/findings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "device/build_id.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxKept = 32;  // devices, variants, numbers of threads and builds

}  // namespace

// XDG base directories: a relative path counts as not set.
std::string cache_folder() {
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder == '/') return (fs::path(folder) / below / "gimbal").string();
  }
  return {};
}

Findings::Findings(const char* subject) : subject_(subject) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return;
  path_ = (folder / (std::string(subject) + ".json")).string();
  std::error_code e;
  if (!fs::exists(path_, e)) return;
  auto text = read_file(path_);
  Json found = text ? Json::parse(*text, nullptr, false) : Json();
  if (found.is_object() && found.contains(subject) && found[subject].is_array()) entries_ = found[subject];
  else damage_ = text ? format("'{}' is not what gimbal wrote there", path_) : text.error().message;
}

const Json& Findings::find(const Json& key) const {
  static const Json none;
  for (const Json& e : entries_)
    if (e.is_object() && e.contains("key") && e["key"] == key) return e;
  return none;
}

Status Findings::put(const Json& key, Json entry) {
  entries_.erase(
      std::remove_if(entries_.begin(), entries_.end(),
                     [&](const Json& e) { return !e.is_object() || e.value("key", Json()) == key; }),
      entries_.end());
  entry["key"] = key;
  entries_.push_back(std::move(entry));
  while (entries_.size() > kMaxKept) entries_.erase(entries_.begin());
  if (path_.empty()) return Error{Code::Failed, "neither XDG_CACHE_HOME nor HOME is an absolute path", ""};
  return replace_file(path_, Json{{subject_, entries_}}.dump(1) + "\n");
}

Json key_of(const Device& d) {
  const gimbal_device_info about = d.describe();
  const bool plugin = d.library() && !d.library()->path().empty();
  return {{"device", d.id()},
          {"name", about.name ? about.name : ""},
          {"driver", about.driver ? about.driver : ""},
          {"features", d.features()},
          {"threads", about.threads},
          {"build", plugin ? build_id() + "+" + d.library()->build_id() : build_id()}};
}

std::string build_id() {
  const std::string id = build_id_of(reinterpret_cast<const void*>(&build_id));
  return id.empty() ? GIMBAL_VERSION : id;
}

}  // namespace gimbal
