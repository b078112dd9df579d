// What gimbal found out about this machine and keeps for its next start, in the user's cache folder: one
// file per subject, one entry per device, driver and build.
#pragma once
#include <string>

#include "base/json_cache.h"
#include "device/device.h"

namespace gimbal {

// Its path is empty when there is no cache folder.
class Findings : public JsonCache {
 public:
  // `subject` names the file and the list in it: "limits" is in ~/.cache/gimbal/limits.json. A literal.
  explicit Findings(const char* subject);
  // Errors besides those of writing: there is no cache folder.
  Status put(const Json& key, Json entry);
};

// What findings about a device depend on: its name, driver, features and threads, this build, and that of the
// plugin that computes on it.
Json key_of(const Device&);

// The linker's fingerprint of this program; its version where the linker leaves none.
std::string build_id();

}  // namespace gimbal
