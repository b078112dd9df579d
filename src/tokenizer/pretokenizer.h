// Splits text into words by the expressions of the model's family. Byte-level BPE merges only inside a
// word.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/split_families.h"

namespace gimbal {

class Pretokenizer {
 public:
  // `rules` is one row of split_families(). Errors: Failed if PCRE2 refuses an expression.
  static Result<Pretokenizer> create(const SplitFamily& rules);
  // An expression of a file's own, in Oniguruma's syntax as far as PCRE2 shares it. Errors: Unsupported if
  // PCRE2 refuses it. An expression that goes back over a text too often finds nothing in the rest of it.
  static Result<Pretokenizer> of_file(const std::string& expression);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // The words, in order; together they are the whole text. Bytes that are not UTF-8 are treated as control
  // characters. Never fails; thread-safe.
  std::vector<std::string_view> split(std::string_view text) const;
  // Only the matches of the first expression, without the text between. Otherwise like split().
  std::vector<std::string_view> matches(std::string_view text) const;

 private:
  struct Expression;
  Pretokenizer();
  uint32_t limit_ = UINT32_MAX;          // of PCRE2's steps for a match
  std::vector<Expression> expressions_;  // applied in turn, each to the words of the one before
};

}  // namespace gimbal
