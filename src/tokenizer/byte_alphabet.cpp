// Bytes that print in Latin-1 keep their number as code point; the others get the code points from 256 on, in
// order.
#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace gimbal {
namespace {

constexpr int kMostCodePoint = 256 + 68;  // 68 bytes do not print

struct Alphabet {
  std::array<std::array<char, 2>, 256> letter{};
  std::array<uint8_t, 256> size{};
  std::array<int16_t, kMostCodePoint> byte{};  // by code point; -1: not in the alphabet
};

constexpr bool prints(int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; }

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (int16_t& b : a.byte) b = -1;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const int code = prints(b) ? b : next++;
    a.byte[size_t(code)] = int16_t(b);
    a.size[size_t(b)] = code < 0x80 ? 1 : 2;
    if (code < 0x80) a.letter[size_t(b)] = {char(code), 0};
    else a.letter[size_t(b)] = {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
  }
  return a;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string_view letter_of_byte(unsigned char byte) {
  return {kAlphabet.letter[byte].data(), kAlphabet.size[byte]};
}

std::string bytes_of_letters(std::string_view letters) {
  std::string out;
  out.reserve(letters.size());
  for (size_t at = 0; at < letters.size();) {
    const Utf8Step step = utf8_step(letters, at);
    int code = kMostCodePoint;
    if (step.kind == Utf8Step::Whole && step.bytes == 1) code = letters[at];
    if (step.kind == Utf8Step::Whole && step.bytes == 2)
      code = (letters[at] & 0x1f) << 6 | (letters[at + 1] & 0x3f);
    const int byte = code < kMostCodePoint ? kAlphabet.byte[size_t(code)] : -1;
    if (byte >= 0) out.push_back(char(byte));
    else out.append(letters.substr(at, step.bytes));
    at += step.bytes;
  }
  return out;
}

}  // namespace gimbal
