#include "engine/machine_cache.h"

#include "base/folders.h"
#include "base/format.h"
#include "base/json.h"
#include "device/library.h"

namespace gimbal {
namespace {

constexpr size_t kMaxKept = 32;  // devices, variants, numbers of threads and builds

}  // namespace

MachineCache::MachineCache(const char* subject)
    : JsonCache(cache_folder().empty() ? "" : format("{}/{}.json", cache_folder(), subject), subject,
                kMaxKept) {}

Status MachineCache::put(const Json& key, Json entry) {
  if (path().empty()) return Error{Code::Failed, "neither XDG_CACHE_HOME nor HOME is an absolute path", ""};
  return JsonCache::put(key, std::move(entry));
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
