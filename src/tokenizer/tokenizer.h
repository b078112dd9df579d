// Text to token ids and back, from the model file's own metadata.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"

namespace gimbal {

using Token = int32_t;

struct TextRange {
  size_t begin, end;  // bytes
};

struct TokenizeOptions {
  bool add_bos = true;        // prepend BOS (append EOS) if the model file requires it
  bool parse_special = true;  // recognise special tokens written out in the text, such as "<|eot|>"
  // Except in these parts of the text, in rising order: user input within a prompt.
  std::span<const TextRange> plain = {};
};

class Tokenizer {
 public:
  // Reads tokenizer.ggml.*. Errors: Malformed (names the key), Unsupported (names the tokenizer model or
  // pre-tokenizer). The result holds its own copies; the metadata may go away.
  static Result<std::unique_ptr<Tokenizer>> create(const Metadata& metadata);
  virtual ~Tokenizer() = default;

  // Accepts any bytes, also invalid UTF-8. Never fails; thread-safe.
  virtual std::vector<Token> encode(std::string_view text, TokenizeOptions options = {}) const = 0;

  // The bytes of one token. A control token returns its text if `special`, else nothing. An id outside the
  // vocabulary returns nothing.
  virtual std::string piece(Token id, bool special = false) const = 0;
  // The text of a sequence. `special`: render control tokens. Undoes the leading space that encode() added,
  // if the sequence is the start of a text.
  virtual std::string decode(std::span<const Token> ids, bool special = false) const = 0;

  virtual int size() const = 0;
  virtual Token bos() const = 0;  // -1 if absent
  virtual Token eos() const = 0;  // -1 if absent
  virtual bool adds_bos() const = 0;
  // Ends a generation: EOS, EOT, EOM and the like, from the file's ids and, as a last resort, known names.
  virtual bool is_stop(Token id) const = 0;
  virtual bool is_control(Token id) const = 0;
  virtual std::string describe()
      const = 0;  // "SentencePiece, 32000 tokens", "byte-level BPE (llama-bpe), ..."
};

// Decodes a stream of tokens into whole characters: holds back the bytes of an incomplete
// character.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false);
  // The text completed by this token; may be empty.
  std::string push(Token id);
  // The held-back rest at the end of the stream; an incomplete character becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool special_;
  bool at_start_ = true;
  std::string held_;
};

}  // namespace gimbal
