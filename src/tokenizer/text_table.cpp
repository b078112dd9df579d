// Hashing and probing for TextTable.
#include "tokenizer/text_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gimbal {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio (Knuth's multiplicative hashing)

uint64_t mix(uint64_t h) { return (h ^ h >> 32) * kOdd; }

// Eight bytes a step; most tokens are one or two steps.
uint64_t hash_of(std::string_view s) {
  uint64_t h = s.size() * kOdd;
  const char* p = s.data();
  size_t n = s.size();
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h ^ word);
  }
  uint64_t tail = 0;
  if (n >= 4) {
    uint32_t front, back;  // may overlap; together they see every byte
    std::memcpy(&front, p, 4);
    std::memcpy(&back, p + n - 4, 4);
    tail = uint64_t(front) << 32 | back;
  } else if (n) {
    tail = uint64_t(uint8_t(p[0])) << 16 | uint64_t(uint8_t(p[n / 2])) << 8 | uint8_t(p[n - 1]);
  }
  h = mix(h ^ tail);
  return h ^ h >> 29;
}

}  // namespace

TextTable::TextTable(const std::vector<std::string_view>& texts) {
  size_t bytes = 0;
  for (std::string_view t : texts) bytes += t.size();
  arena_.reserve(bytes);
  ends_.reserve(texts.size() + 1);
  ends_.push_back(0);
  slots_.resize(std::bit_ceil(texts.size() * 2 + 1));
  const size_t mask = slots_.size() - 1;
  for (std::string_view t : texts) {
    const int number = int(ends_.size()) - 1;
    arena_.append(t);
    ends_.push_back(uint32_t(arena_.size()));
    longest_ = std::max(longest_, t.size());
    if (t.empty()) continue;
    const uint64_t h = hash_of(t);
    for (size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.number < 0) {
        slot = {uint32_t(h >> 32), number};
        break;
      }
      if (slot.tag == uint32_t(h >> 32) && (*this)[slot.number] == t) break;
    }
  }
}

int TextTable::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return -1;
  const size_t mask = slots_.size() - 1;
  const uint64_t h = hash_of(text);
  for (size_t i = h & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number < 0) return -1;
    if (slot.tag == uint32_t(h >> 32) && (*this)[slot.number] == text) return slot.number;
  }
}

}  // namespace gimbal
