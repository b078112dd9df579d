// What every tokenizer does the same way: special tokens, BOS and EOS, rendering of sequences. The algorithms
// fill in how plain text becomes tokens and what a plain token stands for.
#pragma once
#include "tokenizer/special_splitter.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace gimbal {

class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<Token> encode(std::string_view text, TokenizeOptions options) const final;
  std::string piece(Token id, bool special) const final;
  std::string decode(std::span<const Token> ids, bool special) const final;

  int size() const final { return vocabulary_.size(); }
  Token bos() const final { return vocabulary_.bos; }
  Token eos() const final { return vocabulary_.eos; }
  bool adds_bos() const final { return adds_bos_; }
  bool is_stop(Token id) const final { return vocabulary_.has(id) && vocabulary_.is_stop(id); }
  bool is_control(Token id) const final { return vocabulary_.has(id) && vocabulary_.is_control(id); }

 protected:
  // `adds_bos`: where the file does not say.
  VocabularyTokenizer(Vocabulary vocabulary, bool adds_bos);

  // Appends the tokens of text without special tokens; not empty, below 2^30 bytes. `starts`: nothing or a
  // special token is before it.
  virtual void encode_plain(std::string_view text, bool starts, std::vector<Token>& out) const = 0;
  // The bytes of a token of type Normal or Byte.
  virtual std::string plain_piece(Token id) const = 0;
  // Whether encode_plain() puts a space before a text.
  virtual bool adds_space() const = 0;

  const Vocabulary vocabulary_;

 private:
  const SpecialSplitter all_, user_defined_;
  const bool adds_bos_, adds_eos_;
};

// The byte b of a token written "<0xB>", or -1.
int byte_of_name(std::string_view text);

// The algorithms. Errors: Malformed, Unsupported; texts name the file and the key.
Result<std::unique_ptr<Tokenizer>> create_spm(const Gguf& file, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_bpe(const Gguf& file, Vocabulary vocabulary);

}  // namespace gimbal
