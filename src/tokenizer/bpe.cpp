// Byte-level BPE: text is cut into words, and inside a word neighbouring bytes merge in the order of the
// merge rules. Sennrich et al., 2016 (arXiv:1508.07909); over bytes: Radford et al., 2019.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/symbol_merger.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {

namespace {

// ---- GPT-2's alphabet: every byte as one printable character, so that vocabularies of bytes can be stored
// as text (Radford et al., 2019; its encoder.py). Bytes that print in Latin-1 keep their number as code
// point; the others get the code points from 256 on, in order.

constexpr int kMaxCodePoint = 256 + 68;  // 68 bytes do not print

struct Alphabet {
  std::array<std::array<char, 2>, 256> letter{};
  std::array<uint8_t, 256> size{};
  std::array<int16_t, kMaxCodePoint> byte{};  // by code point; -1: not in the alphabet
};

constexpr bool prints(int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; }

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (int16_t& b : a.byte) b = -1;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const int code = prints(b) ? b : next++;
    a.byte[size_t(code)] = int16_t(b);
    a.size[size_t(b)] = code < 0x80 ? 1 : 2;
    if (code < 0x80) a.letter[size_t(b)] = {char(code), 0};
    else a.letter[size_t(b)] = {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
  }
  return a;
}

constexpr Alphabet kAlphabet = make_alphabet();

// The letter of a byte, in UTF-8 (one or two bytes).
std::string_view letter_of_byte(unsigned char byte) {
  return {kAlphabet.letter[byte].data(), kAlphabet.size[byte]};
}

// The bytes of a text in the alphabet. Characters outside of it stand for themselves.
std::string bytes_of_letters(std::string_view letters) {
  std::string out;
  out.reserve(letters.size());
  for (size_t at = 0; at < letters.size();) {
    const Utf8Step step = utf8_step(letters, at);
    int code = kMaxCodePoint;
    if (step.kind == Utf8Step::Whole && step.bytes == 1) code = letters[at];
    if (step.kind == Utf8Step::Whole && step.bytes == 2)
      code = (letters[at] & 0x1f) << 6 | (letters[at + 1] & 0x3f);
    const int byte = code < kMaxCodePoint ? kAlphabet.byte[size_t(code)] : -1;
    if (byte >= 0) out.push_back(char(byte));
    else out.append(letters.substr(at, step.bytes));
    at += step.bytes;
  }
  return out;
}

// ---- The merge rules of a byte-level BPE vocabulary as one flat hash table over pairs of token ids.
class MergeTable {
 public:
  // `rules` as in tokenizer.ggml.merges: "left right", the most important first. A rule that is no pair, or
  // whose parts or result are no tokens, can never apply and is left out; of equal rules the first counts.
  MergeTable(const std::vector<std::string_view>& rules, const Vocabulary&);

  struct Merge {
    int32_t rank;
    Token token;  // -1: no such rule
  };
  Merge find(Token left, Token right) const;
  size_t size() const { return used_; }

 private:
  struct Slot {
    Token left = -1, right = -1;
    Merge merge{0, -1};
  };
  size_t slot_of(Token left, Token right) const;  // where the pair is or would be
  std::vector<Slot> slots_;                       // open addressing, a power of two, at most half full
  size_t used_ = 0;
};

MergeTable::MergeTable(const std::vector<std::string_view>& rules, const Vocabulary& vocabulary) {
  slots_.resize(std::bit_ceil(rules.size() * 2 + 1));
  std::string joined;
  for (size_t rank = 0; rank < rules.size(); ++rank) {
    const std::string_view rule = rules[rank];
    const size_t gap = rule.find(' ', 1);  // a part may begin with a space in odd files
    if (gap == std::string_view::npos || gap + 1 == rule.size()) continue;
    joined.assign(rule, 0, gap).append(rule, gap + 1);
    const Token left = vocabulary.find(rule.substr(0, gap)), right = vocabulary.find(rule.substr(gap + 1));
    const Token token = vocabulary.find(joined);
    if (left < 0 || right < 0 || token < 0) continue;
    Slot& slot = slots_[slot_of(left, right)];
    if (slot.left >= 0) continue;
    slot = {left, right, {int32_t(rank), token}};
    ++used_;
  }
}

size_t MergeTable::slot_of(Token left, Token right) const {
  const size_t mask = slots_.size() - 1;
  uint64_t h = (uint64_t(uint32_t(left)) << 32 | uint32_t(right)) * 0x9e3779b97f4a7c15;
  h ^= h >> 32;
  for (size_t i = h & mask;; i = (i + 1) & mask)
    if (slots_[i].left < 0 || (slots_[i].left == left && slots_[i].right == right)) return i;
}

MergeTable::Merge MergeTable::find(Token left, Token right) const {
  if (left < 0 || right < 0) return {0, -1};
  return slots_[slot_of(left, right)].merge;
}

// ---- The algorithm.

constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kPre[] = "tokenizer.ggml.pre";

class Bpe final : public VocabularyTokenizer {
 public:
  Bpe(Vocabulary vocabulary, const std::vector<std::string_view>& rules, const SplitFamily& family,
      Pretokenizer pretokenizer, std::string rule_name)
      : VocabularyTokenizer(std::move(vocabulary), family.adds_bos),
        merges_(rules, vocabulary_),
        pretokenizer_(std::move(pretokenizer)),
        whole_words_(family.whole_words),
        rule_name_(std::move(rule_name)) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const Token id = vocabulary_.find(letter_of_byte(static_cast<unsigned char>(byte)));
      const bool plain = id >= 0 && vocabulary_.type(id) == TokenType::Normal;
      bytes_[byte] = plain ? id : -1;
      if (!plain) lacks_bytes_ = true;
    }
  }

  std::string describe() const override {
    return format("byte-level BPE ({}), {} tokens, {} merges", rule_name_, vocabulary_.size(),
                  merges_.size());
  }

 private:
  bool adds_space() const override { return false; }

  // Some vocabularies lack the bytes that never occur in UTF-8: U+FFFD stands for those.
  std::string with_known_bytes(std::string_view text) const {
    std::string out;
    for (const char c : text)
      if (bytes_[uint8_t(c)] >= 0) out += c;
      else out += "\xef\xbf\xbd";
    return out;
  }

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    std::string repaired;
    if (lacks_bytes_ && std::any_of(text.begin(), text.end(), [&](char c) { return bytes_[uint8_t(c)] < 0; }))
      text = repaired = with_known_bytes(text);
    SymbolMerger merger;
    std::string letters;
    for (const std::string_view word : pretokenizer_.split(text)) {
      if (whole_words_) {
        const Token id = whole_word(word, letters);
        if (id >= 0) {
          out.push_back(id);
          continue;
        }
      }
      merger.clear();
      for (size_t i = 0; i < word.size(); ++i) merger.add(uint32_t(i), 1, bytes_[uint8_t(word[i])]);
      merger.run(
          [&](const Symbol& left, const Symbol& right) -> SymbolMerger::Merge {
            const MergeTable::Merge merge = merges_.find(left.token, right.token);
            return {merge.token, double(merge.rank)};
          },
          [&](const Symbol& symbol) {
            // Without a token for a byte of U+FFFD itself, only the unknown token is left.
            const Token id = symbol.token >= 0 ? symbol.token : vocabulary_.unknown;
            if (id >= 0) out.push_back(id);
          });
    }
  }

  Token whole_word(std::string_view word, std::string& letters) const {
    if (word.size() > vocabulary_.longest()) return -1;
    letters.clear();
    for (const char c : word) letters += letter_of_byte(static_cast<unsigned char>(c));
    const Token id = vocabulary_.find(letters);
    return id >= 0 && vocabulary_.type(id) == TokenType::Normal ? id : -1;
  }

  std::string plain_piece(Token id) const override {
    const std::string_view text = vocabulary_.text(id);
    if (vocabulary_.type(id) == TokenType::Byte)
      if (const int byte = byte_of_name(text); byte >= 0) return std::string(1, char(byte));
    return bytes_of_letters(text);
  }

  const MergeTable merges_;
  const Pretokenizer pretokenizer_;
  const bool whole_words_;
  const std::string rule_name_;
  std::array<Token, 256> bytes_;
  bool lacks_bytes_ = false;
};

Error malformed(const Gguf& file, const std::string& problem) {
  return {Code::Malformed, format("{}: {}", file.path(), problem),
          "The file's vocabulary is damaged or was written by a broken converter; get the model again."};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_bpe(const Gguf& file, Vocabulary vocabulary) {
  std::string name = "gpt-2", shown = "no pre-tokenizer named in the file, gpt-2 assumed";
  if (file.find(kPre)) {
    const std::optional<std::string_view> pre = file.string(kPre);
    if (!pre) return malformed(file, format("{}: expected a string", kPre));
    shown = name = *pre;
  }
  const SplitFamily* family = split_family_named(name);
  if (!family)
    return Error{
        Code::Unsupported,
        format("{}: {}: the pre-tokenizer {} is not known; known are {}", file.path(), kPre, quoted(name),
               split_family_names()),
        "Text cut by other rules would give the model wrong tokens, so gimbal does not guess. Use a newer "
        "gimbal, or a model of a known family."};
  const GgufArray* merges = file.array(kMerges);
  if (!merges || merges->type != GgufType::String)
    return malformed(file,
                     format("{}: {}", kMerges,
                            file.find(kMerges) ? "expected an array of strings"
                                               : "missing; tokenizer.ggml.model 'gpt2' needs merge rules"));
  if (merges->count > uint64_t(std::numeric_limits<int32_t>::max()))
    return malformed(file, format("{}: {} rules are too many", kMerges, merges->count));
  Result<Pretokenizer> pretokenizer = Pretokenizer::create(*family);
  if (!pretokenizer) return pretokenizer.error();
  return std::unique_ptr<Tokenizer>(std::make_unique<Bpe>(std::move(vocabulary), merges->strings(), *family,
                                                          *std::move(pretokenizer), shown));
}

}  // namespace gimbal
