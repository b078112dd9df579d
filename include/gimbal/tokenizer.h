// Text to token ids and back, by the vocabulary of the model's file.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::v1 {

using Token = int32_t;

// A handle: copies share one tokenizer, which outlives its model. Thread-safe.
class Tokenizer {
 public:
  // Accepts any bytes, also invalid UTF-8. `add_bos`: begin with the model's begin-of-text token, if it has
  // one. `parse_special`: control tokens written out in the text become these tokens.
  std::vector<Token> encode(std::string_view text, bool add_bos = true, bool parse_special = true) const;
  // `special`: write control tokens out. Ignores ids outside the vocabulary.
  std::string decode(std::span<const Token> tokens, bool special = false) const;

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
