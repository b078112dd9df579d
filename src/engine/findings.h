// What gimbal found out about this machine and keeps for its next start, in the user's cache folder: one
// small JSON file per subject, one entry per device, driver and build. A file that is missing, damaged or of
// another version counts as empty: everything in it can be found out again.
#pragma once
#include <string>

#include "base/json.h"
#include "device/device.h"

namespace gimbal {

class Findings {
 public:
  // `subject` names the file and the list in it: "limits" is in ~/.cache/gimbal/limits.json.
  explicit Findings(const char* subject);

  // Where; empty when neither XDG_CACHE_HOME nor HOME is an absolute path.
  const std::string& path() const { return path_; }
  // Why a file that is there counts as empty; empty when it does not.
  const std::string& damage() const { return damage_; }
  // The entry with this key; null when there is none.
  const Json& find(const Json& key) const;
  // Replaces the entry, or adds it; of too many the oldest goes. The file is replaced whole or not at all.
  Status put(const Json& key, Json entry);

 private:
  const char* subject_;
  std::string path_, damage_;
  Json entries_ = Json::array();
};

// "/home/me/.cache/gimbal"; empty when neither XDG_CACHE_HOME nor HOME is an absolute path.
std::string cache_folder();

// What findings about a device depend on: its name, driver, features and threads, this build, and that of the
// plugin that computes on it.
Json key_of(const Device&);

// The linker's fingerprint of this program; its version where the linker leaves none.
std::string build_id();

}  // namespace gimbal
