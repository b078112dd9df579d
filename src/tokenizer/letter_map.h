// Characters to characters: lower case, and letters without their accents. From Unicode's data, packed into a
// few kilobytes (letter_tables.inc).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

class LetterMap {
 public:
  // One to one: if Unicode's lower case has several characters, the first.
  static LetterMap lower_case();
  // The first character of the canonical decomposition (NFD), as llama.cpp takes it: letters lose their
  // accents, compatibility ideographs become the usual ones, a Hangul syllable becomes its leading consonant.
  static LetterMap without_accents();

  uint32_t operator()(uint32_t character) const;
  // Maps every character; bytes that are not UTF-8 stay.
  std::string apply(std::string_view text) const;

 private:
  struct Run {
    uint32_t first, last, stride, target;
    bool constant;  // all map to `target`, not to consecutive characters
  };
  explicit LetterMap(std::span<const uint8_t> packed);
  std::vector<Run> runs_;  // by `first`
};

}  // namespace gimbal
