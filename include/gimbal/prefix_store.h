// A folder that keeps the computed beginnings of texts, so that none is computed twice, also after a restart:
// docs/prefix-store.md. A text has the same bits with it and without it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gimbal::v1 {

struct PrefixStoreSettings {
  std::string folder;               // empty: no store; created with mode 0700 if it is absent
  uint64_t bytes = 10'000'000'000;  // at most in the folder; the least recently used pages go first
  // A secret of 16 to 4096 bytes: only its owners find the pages, and the folder may be shared with other
  // users. Empty: none.
  std::string salt;
};

// Since the store was opened.
struct PrefixStoreNumbers {
  uint64_t hits = 0, misses = 0;  // texts that began with stored pages, and others of at least one page
  uint64_t tokens = 0;            // that were read and not computed
  uint64_t pages_read = 0, pages_written = 0;
  uint64_t pages_damaged = 0;  // deleted, and computed again
  uint64_t pages_dropped = 0;  // not written: the writing thread was behind, or the disk failed
  uint64_t pages_evicted = 0;
  uint64_t bytes = 0;               // in the folder
  double saved_seconds = 0;         // time to compute the pages that were read, less that of reading
  std::vector<std::string> errors;  // of the first pages that were damaged or could not be written
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
