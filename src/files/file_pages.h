// A file in an address range of its own, of which chosen pages are in memory. Unlike a mapping, nothing is
// read by an access: hold() reads pages, drop() gives their memory back, and the bytes in memory are counted.
// The system keeps no second copy: reads bypass its page cache (O_DIRECT), or tell it to forget them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"

namespace gimbal {

class FilePages {
 public:
  struct Range {
    uint64_t begin, end;  // bytes of the file
  };
  // The unit of memory, in bytes: a page of this machine, at least 4096.
  static uint64_t page_bytes();
  // The memory of all pages that a range touches.
  static uint64_t bytes_of(Range);

  // Reserves the addresses; takes memory only for a counter per page. `file` may be closed afterwards.
  // Errors: OutOfMemory; Failed with the system's reason.
  static Result<std::unique_ptr<FilePages>> open(const InputFile& file, const std::string& path);
  ~FilePages();
  FilePages(const FilePages&) = delete;

  // Of the whole file, aligned to a page. A page without a holder is zeros.
  Bytes bytes() const { return {data_, size_t(size_)}; }
  // Makes the pages of these ranges valid until they are dropped. Ranges may share pages: a page stays as
  // long as any range holds it. Errors, after which none of these ranges is held: Failed with the system's
  // reason, or if the file ends before a range.
  Status hold(std::span<const Range>);
  // Of ranges that are held.
  void drop(std::span<const Range>);

  uint64_t held_bytes() const { return held_; }  // of memory, now
  uint64_t most_bytes() const { return most_; }  // the most since open()
  uint64_t read_bytes() const { return read_; }  // from the file, since open()
  bool direct() const { return direct_; }        // reads bypass the system's page cache

 private:
  FilePages() = default;
  Status read(Range);
  void release(uint64_t first_page, uint64_t past_page);

  std::string path_;
  int fd_ = -1;
  bool direct_ = false;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0, reserved_ = 0;
  uint64_t held_ = 0, most_ = 0, read_ = 0;
  std::vector<uint16_t> holders_;  // by page
};

}  // namespace gimbal
