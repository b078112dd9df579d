// Where pages are kept: a folder (page_folder.h), or another process that has the folder (page_client.h).
#pragma once
#include <span>

#include "store/page_file.h"

namespace gimbal {

// Of this process, since its start.
struct PageStoreNumbers {
  uint64_t hits = 0, misses = 0;  // texts that began with stored pages, and others of at least one page
  uint64_t tokens = 0;            // that were read and not computed
  uint64_t pages_read = 0, bytes_read = 0, pages_written = 0, bytes_written = 0;
  uint64_t pages_damaged = 0;  // deleted and computed again
  uint64_t pages_dropped = 0;  // not written: the thread was behind, or the disk failed
  uint64_t pages_evicted = 0;
  double read_seconds = 0;   // until texts had their pages on the device
  double saved_seconds = 0;  // computing these pages took so long, less read_seconds
  uint64_t bytes = 0;        // in the folder

  // Of several processes together. Eviction and the folder's bytes are the folder's, and stay.
  PageStoreNumbers& operator+=(const PageStoreNumbers&);
};

// Thread-safe.
class PagePlace {
 public:
  virtual ~PagePlace() = default;
  virtual bool has(const PageKey&) const = 0;
  // Reads and checks a page into `content`, which has the expected size; returns its microseconds. Errors:
  // NotFound; Malformed for a damaged or forged page, which is deleted; Failed with the system's reason.
  virtual Result<uint64_t> read(const PageKey&, std::span<std::byte> content) = 0;
  // Does nothing if the page exists. Errors: Failed with the system's reason; OutOfMemory if the page is
  // larger than the bound, or other users' pages fill it.
  virtual Status write(const PageKey&, Bytes content, uint64_t microseconds) = 0;
  // Marks pages as used: the first of them as the most recently used one.
  virtual void used(std::span<const PageKey>) = 0;
  // The numbers of this process so far, for a place that adds those of several.
  virtual void count(const PageStoreNumbers&) {}

  virtual uint64_t bytes() const = 0;    // of all pages
  virtual uint64_t evicted() const = 0;  // pages deleted by this process to keep the bound
};

}  // namespace gimbal
