// Settings of a model that take the place of its file's metadata.
#pragma once
#include <gimbal/settings.h>

#include <span>
#include <string>
#include <vector>

#include "files/model_source.h"

namespace gimbal {

// The chat template (a text) and the settings of rotary positions, as if the file had these values. Errors:
// Usage, naming the setting, for those that would change nothing.
Status change_metadata(ModelSource&, const ModelOptions&);

// One such value of rotary positions, as the file would have it.
struct RopeChange {
  std::string key;   // below "<architecture>.rope.": "scaling.type"
  std::string text;  // of scaling.type
  double number = 0;
  bool operator==(const RopeChange&) const = default;
};
// All that took the place of the file's values, by key.
std::vector<RopeChange> rope_changes(const ModelSource&);
// Puts them into another source of the same file. Errors: Malformed for a key that no setting has.
Status apply_rope_changes(ModelSource&, std::span<const RopeChange>);

}  // namespace gimbal
