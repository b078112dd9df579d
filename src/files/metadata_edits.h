// Changes of a model's metadata, as users write them: KEY=VALUE.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"

namespace gimbal {

class MetadataEdits {
 public:
  // The value has the type of the key's value in the file. A new key: true or false, a whole number (u32, or
  // i64 if it does not fit), a number with a point (f32), else a text. Errors: Usage.
  Status set(const Metadata&, std::string_view key_and_value);
  // Errors: Usage if the file has no such key.
  Status remove(const Metadata&, std::string_view key);

  // The keys and values of the result: the file's in their order, then new ones.
  std::vector<std::pair<std::string_view, MetadataEntry>> applied(const Metadata&) const;

 private:
  struct Edit {
    std::string key, text;  // text: of a string
    bool removed = false;
    MetadataEntry entry{};
  };
  Edit& edit(std::string_view key);
  std::deque<Edit> edits_;  // entries are views into their texts
};

}  // namespace gimbal
