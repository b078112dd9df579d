// Findings about this machine, kept in the user's cache folder for the next start: one file per subject,
// one entry per device, driver and build.
#pragma once
#include <string>

#include "base/json_cache.h"
#include "device/device.h"

namespace gimbal {

// The path is empty if no cache folder exists.
class MachineCache : public JsonCache {
 public:
  // `subject` names the file and the list in it: "limits" is in ~/.cache/gimbal/limits.json. A literal.
  explicit MachineCache(const char* subject);
  // Errors: those of writing; no cache folder.
  Status put(const Json& key, Json entry);
};

// The key of a device's findings: its name, driver, features and threads, this build, and the build of the
// plugin that drives it.
Json key_of(const Device&);

// The linker's fingerprint of this program; the program's version if the linker leaves none.
std::string build_id();

}  // namespace gimbal
