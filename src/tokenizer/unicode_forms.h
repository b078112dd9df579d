// The normal forms of Unicode (Unicode Standard Annex 15): characters composed or taken apart, also by
// compatibility. From Unicode's data, packed into some kilobytes (unicode_forms.inc).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gimbal {

enum class UnicodeForm : uint8_t { NFC, NFD, NFKC, NFKD };

class UnicodeForms {
 public:
  UnicodeForms();
  // Bytes that are not UTF-8 stay, and end a sequence.
  std::string normalized(std::string_view text, UnicodeForm) const;

 private:
  struct Decomposition {
    uint32_t begin, count;  // in parts_
    bool compatible;
  };
  void decompose(uint32_t c, bool compatible, std::vector<uint32_t>& out) const;
  uint8_t class_of(uint32_t c) const;
  void order(std::vector<uint32_t>& characters) const;
  void compose(std::vector<uint32_t>& characters) const;
  uint32_t composed(uint32_t first, uint32_t second) const;  // 0: they do not compose

  std::unordered_map<uint32_t, Decomposition> decompositions_;
  std::vector<uint32_t> parts_;
  std::unordered_map<uint64_t, uint32_t> compositions_;  // by first << 32 | second
  std::unordered_map<uint32_t, uint8_t> classes_;        // without those of class 0
};

}  // namespace gimbal
