// What every tokenizer does the same way: special tokens, BOS and EOS, rendering of sequences. The algorithms
// fill in how plain text becomes tokens and what a plain token stands for.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace gimbal {

// A piece of a text: either a special token or plain text between special tokens (token is -1 then, text not
// empty).
struct Fragment {
  Token token;
  std::string_view text;
};

// Finds special tokens that are written out in a text, before anything else looks at the text.
class SpecialSplitter {
 public:
  enum class Kinds {
    All,          // control, unknown and user-defined tokens
    UserDefined,  // what is recognised even where special text counts as plain text
  };
  // Keeps views into the vocabulary, which must outlive it.
  SpecialSplitter(const Vocabulary&, Kinds);

  // Longer tokens win over shorter ones wherever they overlap, of equally long ones the lower id, then the
  // left one. About linear in the length of the text.
  std::vector<Fragment> split(std::string_view text) const;

 private:
  struct Special {
    std::string_view text;
    Token id;
    bool strips_right;
    int32_t shorter;  // the longest other special that this one begins with, or -1
  };
  int longest_at(std::string_view text, size_t at) const;  // index into specials_, or -1

  std::vector<Special> specials_;      // sorted by text
  std::array<uint32_t, 257> first_{};  // specials_ that begin with byte b: [first_[b], first_[b + 1])
};

// The frame itself; see the top of this file.
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
