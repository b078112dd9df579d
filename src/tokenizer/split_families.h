// How the families of byte-level BPE models cut text into words, by the names that files give them
// (tokenizer.ggml.pre). Text that is cut by other rules gives a model wrong tokens, so an unknown name is
// refused.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

// Expressions are applied one after the other, each inside the words that the one before left. What an
// expression matches becomes a word, and so does what lies between its matches.
struct SplitFamily {
  enum Trait : uint8_t {
    WholeWords = 1,      // a word that is a token is taken whole, whatever the merges say
    AddsBos = 2,         // where the file does not say
    IgnoresAddBos = 4,   // BOS is added even where the file says no: its converters wrote that by mistake
    Characters = 8,      // tokens are UTF-8; characters without a token become byte tokens <0x..>
    EscapesSpaces = 16,  // U+2581 stands for a space
    WholeNewlines = 32,  // a run of newlines that is a token is taken whole
  };
  const char* names;           // of tokenizer.ggml.pre, separated by spaces
  const char* expressions[6];  // PCRE2; unused ones are null. \s and \S mean Unicode's White_Space
  int traits = 0;              // a sum of Trait

  bool has(Trait trait) const { return (traits & trait) != 0; }
};

std::span<const SplitFamily> split_families();
const SplitFamily* split_family_named(std::string_view name);  // null when unknown
std::vector<std::string> split_family_names();                 // all of them, in alphabetical order

}  // namespace gimbal
