// Unpacking and searching the maps of letters.
#include "tokenizer/letter_map.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/characters.h"

namespace gimbal {
namespace {

#include "tokenizer/letter_tables.inc"

}  // namespace

LetterMap LetterMap::lower_case() { return LetterMap(kLowerCase); }
LetterMap LetterMap::without_accents() { return LetterMap(kFirstOfDecomposition); }

LetterMap::LetterMap(std::span<const uint8_t> packed) {
  size_t at = 0;
  const auto number = [&] {
    uint32_t value = 0;
    for (int shift = 0;; shift += 7) {
      value |= uint32_t(packed[at] & 127) << shift;
      if (packed[at++] < 128) return value;
    }
  };
  uint32_t previous = 0;
  while (at < packed.size()) {
    const uint32_t head = number();
    const uint32_t shape = head & 1 ? number() + 4 : 0;  // (count - 1) * 4 + (stride - 1) * 2 + constant
    const uint32_t distance = number();
    Run run;
    run.first = previous + (head >> 1);
    run.stride = (shape >> 1 & 1) + 1;
    run.last = run.first + (shape >> 2) * run.stride;
    run.constant = shape & 1;
    run.target = distance & 1 ? run.first - (distance + 1) / 2 : run.first + distance / 2;
    previous = run.last;
    runs_.push_back(run);
  }
}

uint32_t LetterMap::operator()(uint32_t character) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), character,
                                      [](uint32_t c, const Run& run) { return c < run.first; });
  if (after == runs_.begin()) return character;
  const Run& run = after[-1];
  const uint32_t offset = character - run.first;
  if (character > run.last || offset % run.stride) return character;
  return run.constant ? run.target : run.target + offset;
}

std::string LetterMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const std::string_view character = text.substr(at, step.bytes);
    if (step.kind == Utf8Step::Whole) append_character((*this)(code_point(character)), out);
    else out += character;
    at += step.bytes;
  }
  return out;
}

}  // namespace gimbal
