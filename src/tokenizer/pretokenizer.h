// Cuts text into the words inside which byte-level BPE merges, by the split expressions of the model's
// family.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// The split expressions of the model families, by the names that files give them (tokenizer.ggml.pre).

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

class Pretokenizer {
 public:
  // `rules` is one row of split_families(). Errors: Failed when PCRE2 refuses an expression.
  static Result<Pretokenizer> create(const SplitFamily& rules);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // The words, in order; together they are the whole text. Bytes that are not UTF-8 are treated as control
  // characters. Never fails; thread-safe.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Expression;
  Pretokenizer();
  std::vector<Expression> expressions_;  // applied in turn, each to the words of the one before
};

}  // namespace gimbal
