// How the families of byte-level BPE models split text into words, by their names in files
// (tokenizer.ggml.pre). Other rules would give a model wrong tokens, so an unknown name is an
// error.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

// Expressions are applied one after the other, each inside the words that the one before left. Each match
// of an expression becomes a word, and so does the text between two matches.
struct SplitFamily {
  enum Trait : uint8_t {
    WholeWords = 1,      // a word that is a token is taken whole, regardless of the merges
    AddsBos = 2,         // if the file does not specify it
    IgnoresAddBos = 4,   // add BOS even if the file forbids it: its converters wrote that by mistake
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
const SplitFamily* split_family_named(std::string_view name);  // null if unknown
std::vector<std::string> split_family_names();                 // all of them, in alphabetical order

}  // namespace gimbal
