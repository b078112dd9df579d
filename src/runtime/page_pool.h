// Which pages of a cache are in use, and by how many sequences. Bookkeeping only: the bytes lie on the
// devices.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace gimbal {

class PagePool {
 public:
  explicit PagePool(int pages);

  int free() const { return int(free_.size()); }
  // For one user. nullopt: none is free.
  std::optional<int32_t> take();
  void share(int32_t page) { users_[size_t(page)]++; }  // one user more
  void release(int32_t page);                           // one user fewer; the last one frees it
  int users(int32_t page) const { return users_[size_t(page)]; }

 private:
  std::vector<int32_t> users_;  // by page
  std::vector<int32_t> free_;   // the last one is taken first
};

}  // namespace gimbal
