// The common part of all tokenizers: special tokens, BOS and EOS, rendering of sequences. The algorithms
// add the tokenization of plain text and the bytes of plain tokens.
#pragma once
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/special_splitter.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace gimbal {

// Tokens that encode() puts around a text on request; -1: none.
struct Affixes {
  Token first = -1, last = -1;
};
// BOS and EOS as the file requires; else as given.
Affixes bos_and_eos(const Vocabulary&, bool adds_bos, bool adds_eos);

class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<Token> encode(std::string_view text, TokenizeOptions options) const final;
  std::string piece(Token id, bool special) const final;
  std::string decode(std::span<const Token> ids, bool special) const final;

  int size() const final { return vocabulary_.size(); }
  Token bos() const final { return vocabulary_.bos; }
  Token eos() const final { return vocabulary_.eos; }
  bool adds_bos() const final { return around_.first >= 0; }
  bool is_stop(Token id) const final { return vocabulary_.has(id) && vocabulary_.is_stop(id); }
  bool is_control(Token id) const final { return vocabulary_.has(id) && vocabulary_.is_control(id); }

 protected:
  VocabularyTokenizer(Vocabulary vocabulary, Affixes around);

  // Appends the tokens of text without special tokens; not empty, below 2^30 bytes. `starts`: it is the
  // first text, or follows a special token.
  virtual void encode_plain(std::string_view text, bool starts, std::vector<Token>& out) const = 0;
  // The bytes of a token of type Normal or Byte.
  virtual std::string plain_piece(Token id) const = 0;
  // For vocabularies of plain texts, with marked spaces and byte tokens.
  std::string unescaped_piece(Token id) const;
  // Whether encode_plain() puts a space before a text.
  virtual bool adds_space() const = 0;

  const Vocabulary vocabulary_;

 private:
  std::vector<Fragment> fragments(std::string_view text, const TokenizeOptions& options) const;

  const SpecialSplitter all_, user_defined_;
  const Affixes around_;
};

// The byte b of a token written "<0xB>", or -1.
int byte_of_name(std::string_view text);

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581, how vocabularies write a space
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

// The tokens that plain text may become, without byte tokens.
std::vector<PrefixTree::Entry> plain_entries(const Vocabulary&);

// The ids of the byte tokens "<0x00>" to "<0xFF>"; -1 if absent.
std::array<Token, 256> byte_tokens(const Vocabulary&);

// The algorithms. Errors: Malformed, Unsupported; texts name the file and the key.
Result<std::unique_ptr<Tokenizer>> create_spm(const Metadata& metadata, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_bpe(const Metadata& metadata, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_wordpiece(const Metadata& metadata, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_unigram(const Metadata& metadata, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_rwkv(const Metadata& metadata, Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_plamo2(const Metadata& metadata, Vocabulary vocabulary);

// gimbal's own key: the rules of a tokenizer.json, which is the file without vocabulary and merges. They go
// before the algorithm of tokenizer.ggml.model, which describes them only roughly.
inline constexpr const char* kRulesKey = "tokenizer.gimbal.rules";
Result<std::unique_ptr<Tokenizer>> create_published(const Metadata& metadata, Vocabulary vocabulary);

}  // namespace gimbal
