// The one decoder of UTF-8 structure that the tokenizers share.
#include "model/tokenizer/utf8.h"

namespace gimbal {
namespace {

// How many continuation bytes a first byte asks for, and the range of the first of them, which is where
// overlong forms, surrogates and numbers above U+10FFFF are refused.
struct Lead {
  uint8_t more, low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  const uint8_t first = uint8_t(text[at]);
  if (first < 0x80) return {1, Utf8Step::Whole};
  const Lead lead = lead_of(first);
  if (!lead.more) return {1, Utf8Step::Broken};
  for (uint32_t i = 1; i <= lead.more; ++i) {
    if (at + i == text.size()) return {i, Utf8Step::Cut};
    const uint8_t byte = uint8_t(text[at + i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xc0) == 0x80;
    if (!fits) return {i, Utf8Step::Broken};
  }
  return {lead.more + 1u, Utf8Step::Whole};
}

}  // namespace gimbal
