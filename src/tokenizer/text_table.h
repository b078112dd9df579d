// The texts of a vocabulary in one arena, with a flat hash index from text to number: 10^5 texts must load in
// milliseconds, so there is no allocation per text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

class TextTable {
 public:
  // All the texts in order; text i gets number i. An empty text is kept but cannot be found; of equal texts
  // the first is found. The texts together must be smaller than 4 GiB, their number below 2^31.
  explicit TextTable(const std::vector<std::string_view>& texts);

  int size() const { return int(ends_.size()) - 1; }
  std::string_view operator[](int i) const {
    return std::string_view(arena_).substr(ends_[size_t(i)], ends_[size_t(i) + 1] - ends_[size_t(i)]);
  }
  int find(std::string_view text) const;       // -1 when absent
  size_t longest() const { return longest_; }  // bytes

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t number = -1;
  };
  std::string arena_;
  std::vector<uint32_t> ends_;  // text i is arena_[ends_[i], ends_[i + 1])
  std::vector<Slot> slots_;     // open addressing, a power of two, at most half full
  size_t longest_ = 0;
};

}  // namespace gimbal
