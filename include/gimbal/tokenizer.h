// Text to token ids and back, by the vocabulary of the model's file.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/error.h"

namespace gimbal::v1 {

using Token = int32_t;

// From `begin` to before `end`.
struct TextPart {
  size_t begin = 0, end = 0;
};

// A handle: copies share one tokenizer, which outlives its model. Thread-safe.
class Tokenizer {
 public:
  // Accepts any bytes, also invalid UTF-8. `add_bos`: begin with the model's begin-of-text token, if it has
  // one. `parse_special`: control tokens written out in the text become these tokens.
  std::vector<Token> encode(std::string_view text, bool add_bos = true, bool parse_special = true) const;
  // `special`: write control tokens out. Ignores ids outside the vocabulary.
  std::string decode(std::span<const Token> tokens, bool special = false) const;

  // The part of the text that each of its tokens stands for, in bytes; empty for tokens that were added, such
  // as begin-of-text. Errors: Unsupported if these tokens do not spell the text, which is so for tokenizers
  // that change it: upper case, accents or spaces.
  Result<std::vector<TextPart>> parts(std::string_view text, std::span<const Token> tokens) const;

  int size() const;           // number of tokens in the vocabulary
  Token bos() const;          // begin of text; -1: none
  Token eos() const;          // end of text; -1: none
  bool is_stop(Token) const;  // whether the token ends a text

  struct Impl;

 private:
  friend struct Access;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
