// hot: every character of a text
#include "tokenizer/unicode_forms.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/characters.h"

namespace gimbal {
namespace {

#include "tokenizer/unicode_forms.inc"

// Hangul: a syllable is a leading consonant, a vowel and perhaps a trailing consonant (the Unicode
// Standard, 3.12).
constexpr uint32_t kSyllables = 0xac00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11a7;
constexpr uint32_t kLeadings = 19, kVowelCount = 21, kTrailings = 28, kPerLeading = kVowelCount * kTrailings,
                   kSyllableCount = kLeadings * kPerLeading;
// Characters before this one are their own composed form, and combine with nothing before them.
constexpr uint32_t kFirstCombining = 0x300;

class Packed {
 public:
  template <size_t N>
  explicit Packed(const uint8_t (&data)[N]) : at_(data), end_(data + N) {}
  bool done() const { return at_ == end_; }
  uint32_t number() {
    uint32_t value = 0;
    for (int shift = 0;; shift += 7) {
      value |= uint32_t(*at_ & 127) << shift;
      if (*at_++ < 128) return value;
    }
  }
  int32_t distance() {
    const uint32_t n = number();
    return n & 1 ? -int32_t((n + 1) / 2) : int32_t(n / 2);
  }

 private:
  const uint8_t *at_, *end_;
};

}  // namespace

UnicodeForms::UnicodeForms() {
  uint32_t c = 0;
  for (Packed packed(kDecompositions); !packed.done();) {
    const uint32_t head = packed.number(), count = packed.number();
    c += head >> 2;
    decompositions_[c] = {uint32_t(parts_.size()), count, (head & 1) != 0};
    int64_t part = c;
    for (uint32_t i = 0; i < count; i++) parts_.push_back(uint32_t(part += packed.distance()));
    if (head & 2) compositions_[uint64_t(parts_[parts_.size() - 2]) << 32 | parts_.back()] = c;
  }
  c = 0;
  for (Packed packed(kCombiningClasses); !packed.done();) {
    c += packed.number();
    const uint32_t end = c + packed.number();
    const auto value = uint8_t(packed.number());
    for (; c < end; c++) classes_[c] = value;
  }
}

void UnicodeForms::decompose(uint32_t c, bool compatible, std::vector<uint32_t>& out) const {
  if (c >= kSyllables && c < kSyllables + kSyllableCount) {
    const uint32_t i = c - kSyllables;
    out.push_back(kLeading + i / kPerLeading);
    out.push_back(kVowels + i % kPerLeading / kTrailings);
    if (i % kTrailings) out.push_back(kTrailing + i % kTrailings);
    return;
  }
  const auto found = c < 0xa0 ? decompositions_.end() : decompositions_.find(c);
  if (found == decompositions_.end() || (found->second.compatible && !compatible)) return out.push_back(c);
  for (uint32_t i = 0; i < found->second.count; i++)
    decompose(parts_[found->second.begin + i], compatible, out);
}

uint8_t UnicodeForms::class_of(uint32_t c) const {
  if (c < kFirstCombining) return 0;
  const auto found = classes_.find(c);
  return found == classes_.end() ? 0 : found->second;
}

// Combining characters in a row, by their classes.
void UnicodeForms::order(std::vector<uint32_t>& all) const {
  for (size_t i = 0; i < all.size();) {
    if (!class_of(all[i])) {
      i++;
      continue;
    }
    size_t end = i;
    while (end < all.size() && class_of(all[end])) end++;
    std::stable_sort(all.begin() + long(i), all.begin() + long(end),
                     [&](uint32_t a, uint32_t b) { return class_of(a) < class_of(b); });
    i = end;
  }
}

uint32_t UnicodeForms::composed(uint32_t first, uint32_t second) const {
  if (first - kLeading < kLeadings && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kTrailings;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailings == 0 && second > kTrailing &&
      second - kTrailing < kTrailings)
    return first + (second - kTrailing);
  const auto found = compositions_.find(uint64_t(first) << 32 | second);
  return found == compositions_.end() ? 0 : found->second;
}

void UnicodeForms::compose(std::vector<uint32_t>& all) const {
  size_t out = 0, starter = all.size();
  uint8_t last = 0;  // class of the character kept before
  for (size_t i = 0; i < all.size(); i++) {
    const uint32_t c = all[i];
    const uint8_t its = class_of(c);
    // Blocked by a character in between of the same or a higher class, or of class 0.
    const bool adjacent = starter < out && out == starter + 1;
    if (starter < out && (adjacent || (last != 0 && last < its)))
      if (const uint32_t both = composed(all[starter], c)) {
        all[starter] = both;
        continue;
      }
    if (!its) starter = out;
    last = its;
    all[out++] = c;
  }
  all.resize(out);
}

std::string UnicodeForms::normalized(std::string_view text, UnicodeForm form) const {
  const bool compatible = form == UnicodeForm::NFKC || form == UnicodeForm::NFKD;
  const bool composes = form == UnicodeForm::NFC || form == UnicodeForm::NFKC;
  std::string out;
  out.reserve(text.size());
  std::vector<uint32_t> characters;
  const auto flush = [&] {
    order(characters);
    if (composes) compose(characters);
    for (uint32_t c : characters) append_character(c, out);
    characters.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const std::string_view one = text.substr(at, step.bytes);
    at += step.bytes;
    if (step.kind != Utf8Step::Whole) {
      flush();
      out += one;
      continue;
    }
    const uint32_t c = code_point(one);
    if (c < 0xa0) {  // a base that changes nothing before it
      flush();
      characters.push_back(c);
      continue;
    }
    decompose(c, compatible, characters);
  }
  flush();
  return out;
}

}  // namespace gimbal
