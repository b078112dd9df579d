// Text to token ids and back, as the model's own file says.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::v1 {

using Token = int32_t;

// A handle: copies share one tokenizer, which does not need its model any more. Thread-safe.
class Tokenizer {
 public:
  // Any bytes, also invalid UTF-8. `add_bos`: put the model's begin-of-text token first, where it has one.
  // `parse_special`: read control tokens that are written out in the text.
  std::vector<Token> encode(std::string_view text, bool add_bos = true, bool parse_special = true) const;
  // `special`: write control tokens out. Ids outside the vocabulary give nothing.
  std::string decode(std::span<const Token> tokens, bool special = false) const;

  int size() const;           // tokens of the vocabulary
  Token bos() const;          // -1 where there is none
  Token eos() const;          // -1 where there is none
  bool is_stop(Token) const;  // ends a text

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
