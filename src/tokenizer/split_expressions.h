// The split expressions of the model families, by the names that files give them (tokenizer.ggml.pre).
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace gimbal {

// Expressions are applied one after the other, each inside the words that the one before left. What an
// expression matches becomes a word, and so does what lies between its matches.
struct SplitFamily {
  const char* names;           // of tokenizer.ggml.pre, separated by spaces
  const char* expressions[6];  // PCRE2; unused ones are null. \s and \S mean Unicode's White_Space
  bool whole_words = false;    // a word that is a token is taken whole, whatever the merges say
  bool adds_bos = false;       // where the file does not say
};

std::span<const SplitFamily> split_families();
const SplitFamily* split_family_named(std::string_view name);  // null when unknown
std::string split_family_names();  // all of them, for errors: "command-r, default, ..."

}  // namespace gimbal
