// Byte-level BPE: text is cut into words, and inside a word neighbouring bytes merge in the order of the
// merge rules. Sennrich et al., 2016 (arXiv:1508.07909); over bytes: Radford et al., 2019.
#include <algorithm>
#include <array>
#include <limits>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/symbol_merger.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

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
