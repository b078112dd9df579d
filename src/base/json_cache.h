// A small cache in a JSON file; each entry has a key and the time of its last write. A missing, damaged or
// foreign file counts as empty, because every entry can be computed again.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

// Not thread-safe. If two programs write at once, the last one wins.
class JsonCache {
 public:
  // `list`: name of the list in the file; a literal. Empty `path`: in memory only. `max_seconds`: lifetime of
  // an entry; 0: unlimited.
  JsonCache(std::string path, const char* list, size_t max_entries, int64_t max_seconds = 0);
  ~JsonCache();

  const std::string& path() const { return path_; }
  // Why an existing file counts as empty; "" if it does not.
  const std::string& damage();
  // The entry with this key, including its time as "when" (seconds since 1970); null if there is none.
  // Untrusted: any program can write this file.
  const Json& find(const Json& key);
  // Adds or replaces an entry, an object; evicts the oldest beyond max_entries. The file is replaced
  // atomically; if that fails, the entry stays in memory.
  Status put(const Json& key, Json entry);
  Status erase(const Json& key);

 private:
  void load();  // on first use
  bool remove(const Json& key);
  Status write() const;

  std::string path_, damage_;
  const char* list_;
  size_t max_entries_;
  int64_t max_seconds_;
  bool loaded_ = false;
  std::unique_ptr<Json> entries_;  // an array
};

// The string member of this name; empty if missing.
std::string text_in(const Json& object, const char* name);

}  // namespace gimbal
