// GPT-2's alphabet: every byte as one printable character, so that vocabularies of bytes can be stored as
// text (Radford et al., 2019; its encoder.py). Bytes that print in Latin-1 keep their number as code point;
// the others get the code points from 256 on, in order.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace gimbal {

inline constexpr int kMaxCodePoint = 256 + 68;  // 68 bytes do not print

struct ByteAlphabet {
  std::array<std::array<char, 2>, 256> letter{};
  std::array<uint8_t, 256> size{};
  std::array<int16_t, kMaxCodePoint> byte{};  // by code point; -1: not in the alphabet
};

constexpr bool prints_in_latin1(int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; }

constexpr ByteAlphabet make_byte_alphabet() {
  ByteAlphabet a;
  for (int16_t& b : a.byte) b = -1;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const int code = prints_in_latin1(b) ? b : next++;
    a.byte[size_t(code)] = int16_t(b);
    a.size[size_t(b)] = code < 0x80 ? 1 : 2;
    if (code < 0x80) a.letter[size_t(b)] = {char(code), 0};
    else a.letter[size_t(b)] = {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
  }
  return a;
}

inline constexpr ByteAlphabet kByteAlphabet = make_byte_alphabet();

// The letter of a byte, in UTF-8 (one or two bytes).
inline std::string_view letter_of_byte(unsigned char byte) {
  return {kByteAlphabet.letter[byte].data(), kByteAlphabet.size[byte]};
}

// The bytes of a text in the alphabet. Characters outside the alphabet stay unchanged.
inline std::string bytes_of_letters(std::string_view letters) {
  std::string out;
  out.reserve(letters.size());
  for (size_t at = 0; at < letters.size();) {
    const Utf8Step step = utf8_step(letters, at);
    int code = kMaxCodePoint;
    if (step.kind == Utf8Step::Whole && step.bytes == 1) code = letters[at];
    if (step.kind == Utf8Step::Whole && step.bytes == 2)
      code = (letters[at] & 0x1f) << 6 | (letters[at + 1] & 0x3f);
    const int byte = code < kMaxCodePoint ? kByteAlphabet.byte[size_t(code)] : -1;
    if (byte >= 0) out.push_back(char(byte));
    else out.append(letters.substr(at, step.bytes));
    at += step.bytes;
  }
  return out;
}

}  // namespace gimbal
