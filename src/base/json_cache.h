// A small cache in a JSON file: entries, each with its key and the time when it was written. A file that is
// missing, damaged or of another kind counts as empty: what is kept here can be found out again.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

// Not thread-safe. Of two programs that write at once the last one wins.
class JsonCache {
 public:
  // `list`: its name in the file; a literal. `path` empty: in memory only. Entries count for `max_seconds`,
  // 0: for ever.
  JsonCache(std::string path, const char* list, size_t max_entries, int64_t max_seconds = 0);
  ~JsonCache();

  const std::string& path() const { return path_; }
  // Why a file that is there counts as empty; empty when it does not.
  const std::string& damage();
  // The entry with this key, which has its time as "when" (seconds since 1970); null when there is none.
  // Whatever it holds may have been written by anybody.
  const Json& find(const Json& key);
  // Replaces the entry, an object, or adds it; of too many the oldest goes. The file is replaced whole or not
  // at all; where that fails, the entry is kept in memory.
  Status put(const Json& key, Json entry);
  Status erase(const Json& key);

 private:
  void load();  // at first use
  bool remove(const Json& key);
  Status write() const;

  std::string path_, damage_;
  const char* list_;
  size_t max_entries_;
  int64_t max_seconds_;
  bool loaded_ = false;
  std::unique_ptr<Json> entries_;  // an array
};

// The text of this name in an object; empty where there is none.
std::string text_in(const Json& object, const char* name);

}  // namespace gimbal
