// Counts the users of each page of a cache. Bookkeeping only: the bytes lie on the
// devices.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace gimbal {

class PagePool {
 public:
  explicit PagePool(int pages) : users_(size_t(pages), 0) {
    free_.reserve(users_.size());
    for (int32_t page = pages; page-- > 0;) free_.push_back(page);
  }

  int free() const { return int(free_.size()); }
  // For one user. nullopt: none is free.
  std::optional<int32_t> take() {
    if (free_.empty()) return std::nullopt;
    const int32_t page = free_.back();
    free_.pop_back();
    users_[size_t(page)] = 1;
    return page;
  }
  // Add and remove a user; the last one frees the page.
  void share(int32_t page) { users_[size_t(page)]++; }
  void release(int32_t page) {
    if (--users_[size_t(page)] == 0) free_.push_back(page);
  }
  int users(int32_t page) const { return users_[size_t(page)]; }

 private:
  std::vector<int32_t> users_;  // by page
  std::vector<int32_t> free_;   // the last one is taken first
};

}  // namespace gimbal
