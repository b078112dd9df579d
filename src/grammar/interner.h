// Interned integer lists: each is stored once, and equal lists have the same index.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace gimbal {

class Interner {
 public:
  using List = std::span<const uint32_t>;

  // The index of the list; new lists get consecutive indices from 0.
  uint32_t number(List list) {
    if ((size() + 1) * 2 > slots_.size()) grow();
    size_t slot = hash(list) & (slots_.size() - 1);
    for (; slots_[slot]; slot = (slot + 1) & (slots_.size() - 1))
      if (const List known = (*this)[slots_[slot] - 1];
          std::equal(known.begin(), known.end(), list.begin(), list.end()))
        return slots_[slot] - 1;
    pool_.insert(pool_.end(), list.begin(), list.end());
    begins_.push_back(uint32_t(pool_.size()));
    return (slots_[slot] = size()) - 1;
  }
  // Valid until the next new list.
  List operator[](uint32_t number) const {
    return List(pool_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
  }
  uint32_t size() const { return uint32_t(begins_.size() - 1); }
  size_t bytes() const { return (pool_.size() + begins_.size() + slots_.size()) * sizeof(uint32_t); }

 private:
  static size_t hash(List list) {
    uint64_t h = list.size();
    for (uint32_t n : list) h = (h ^ n) * 0x9e3779b97f4a7c15, h ^= h >> 32;
    return size_t(h);
  }
  void grow() {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), 0);
    for (uint32_t n = 0; n < size(); n++) {
      size_t slot = hash((*this)[n]) & (slots_.size() - 1);
      while (slots_[slot]) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = n + 1;
    }
  }

  std::vector<uint32_t> pool_, begins_{0},
      slots_;  // slots: index + 1; 0: free. Size: a power of two, at most half full
};

}  // namespace gimbal
