// FNV-1a, 64 bits, also at compile time. Detects accidental differences, not forgery.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace gimbal {

class Hash {
 public:
  constexpr Hash& add(std::string_view text) {
    for (char c : text) add_byte(uint8_t(c));
    add_byte(0);  // "a", "bc" is not "ab", "c"
    return *this;
  }
  constexpr Hash& add(uint64_t n) {
    for (int i = 0; i < 8; i++) add_byte(uint8_t(n >> 8 * i));
    return *this;
  }
  constexpr uint64_t value() const { return hash_; }

 private:
  constexpr void add_byte(uint8_t b) { hash_ = (hash_ ^ b) * 0x100000001b3; }
  uint64_t hash_ = 0xcbf29ce484222325;
};

// Hash of large data at about memory speed: four streams of eight bytes each.
uint64_t hash_of(Bytes);

}  // namespace gimbal
