#include "runtime/page_pool.h"

namespace gimbal {

PagePool::PagePool(int pages) : users_(size_t(pages), 0) {
  free_.reserve(users_.size());
  for (int32_t page = pages; page-- > 0;) free_.push_back(page);
}

std::optional<int32_t> PagePool::take() {
  if (free_.empty()) return std::nullopt;
  const int32_t page = free_.back();
  free_.pop_back();
  users_[size_t(page)] = 1;
  return page;
}

void PagePool::release(int32_t page) {
  if (--users_[size_t(page)] == 0) free_.push_back(page);
}

}  // namespace gimbal
