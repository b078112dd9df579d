// hot: every character of a text
// BPE: text is cut into words, and inside a word neighbouring symbols merge in the order of the merge rules.
// Symbols are bytes, written in GPT-2's alphabet, or characters. Sennrich et al., 2016 (arXiv:1508.07909);
// over bytes: Radford et al., 2019.
#include <limits>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/letter_map.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/symbol_merger.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

constexpr char kAlgorithm[] = "tokenizer.ggml.model";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kPre[] = "tokenizer.ggml.pre";

struct Rules {
  const SplitFamily* family;
  Pretokenizer pretokenizer;
  std::string shown;          // the family's name, or why there is none
  bool drops_spaces = false;  // only matches of the expressions become tokens
  bool lowers = false;        // letters become lower case first
};

class Bpe final : public VocabularyTokenizer {
 public:
  Bpe(Vocabulary vocabulary, Affixes around, const std::vector<std::string_view>& merges, Rules rules)
      : VocabularyTokenizer(std::move(vocabulary), around),
        merges_(merges, vocabulary_),
        rules_(std::move(rules)),
        characters_(rules_.family->has(SplitFamily::Characters)),
        bytes_(characters_ ? byte_tokens(vocabulary_) : letter_tokens(vocabulary_)) {}

  std::string describe() const override {
    return format("{} BPE ({}), {} tokens, {} merges", characters_ ? "character-level" : "byte-level",
                  rules_.shown, vocabulary_.size(), merges_.size());
  }

 private:
  static std::array<Token, 256> letter_tokens(const Vocabulary& vocabulary) {
    std::array<Token, 256> tokens;
    for (size_t byte = 0; byte < 256; ++byte) {
      // A letter that is not a normal token is an added one, and means itself.
      const Token id = vocabulary.find(letter_of_byte(uint8_t(byte)));
      tokens[byte] = id >= 0 && vocabulary.type(id) == TokenType::Normal ? id : -1;
    }
    return tokens;
  }

  bool adds_space() const override { return false; }

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    std::string changed;
    if (rules_.family->has(SplitFamily::EscapesSpaces)) text = changed = replaced(text, " ", kSpaceMark);
    if (rules_.lowers) text = changed = LetterMap::lower_case().apply(text);
    SymbolMerger merger;
    std::string letters;
    for (const std::string_view word :
         rules_.drops_spaces ? rules_.pretokenizer.matches(text) : rules_.pretokenizer.split(text)) {
      if (const Token whole = whole_word(word, letters); whole >= 0) {
        out.push_back(whole);
        continue;
      }
      merger.clear();
      for (size_t at = 0; at < word.size();) {
        const uint32_t size = characters_ ? utf8_step(word, at).bytes : 1;
        const Token id =
            characters_ ? vocabulary_.find_plain(word.substr(at, size)) : bytes_[uint8_t(word[at])];
        merger.add(uint32_t(at), size, id);
        at += size;
      }
      merger.run(
          [&](const Symbol& left, const Symbol& right) -> SymbolMerger::Merge {
            const MergeTable::Merge merge = merges_.find(left.token, right.token);
            return {merge.token, double(merge.rank)};
          },
          [&](const Symbol& symbol) {
            if (symbol.token >= 0) out.push_back(symbol.token);
            else if (characters_) append_bytes(word.substr(symbol.begin, symbol.size), out);
            // A byte without a token is dropped, as llama.cpp does.
          });
    }
  }

  void append_bytes(std::string_view character, std::vector<Token>& out) const {
    for (const char c : character)
      if (const Token id = bytes_[uint8_t(c)]; id >= 0) out.push_back(id);
  }

  // The token of a word that is not to be merged, or -1. `letters` is memory to reuse.
  Token whole_word(std::string_view word, std::string& letters) const {
    const bool newlines = rules_.family->has(SplitFamily::WholeNewlines) && word.starts_with('\n');
    if (!newlines && !rules_.family->has(SplitFamily::WholeWords)) return -1;
    if (word.size() > vocabulary_.longest()) return -1;
    if (characters_) return vocabulary_.find_plain(word);
    letters.clear();
    for (const char c : word) letters += letter_of_byte(uint8_t(c));
    return vocabulary_.find_plain(letters);
  }

  std::string plain_piece(Token id) const override {
    const std::string_view text = vocabulary_.text(id);
    if (vocabulary_.type(id) == TokenType::Byte || rules_.family->has(SplitFamily::EscapesSpaces))
      return unescaped_piece(id);
    return bytes_of_letters(text);
  }

  const MergeTable merges_;
  const Rules rules_;
  const bool characters_;
  const std::array<Token, 256> bytes_;  // in characters mode the byte tokens <0x..>
};

Error malformed(const Metadata& metadata, const std::string& problem) {
  return {Code::Malformed, format("{}: {}", metadata.source(), problem),
          "The file's vocabulary is damaged or was written by a broken converter; get the model again."};
}

// The family of the file's pre-tokenizer. Without a name llama.cpp uses "default"; so do we, with a note.
Result<const SplitFamily*> family_of(const Metadata& metadata, std::string& shown) {
  std::string name = "default";
  shown = "no pre-tokenizer named in the file, default assumed";
  if (metadata.string(kAlgorithm) == "gemma4") {
    shown = name = "gemma4";
  } else if (metadata.find(kPre)) {
    const std::optional<std::string_view> pre = metadata.string(kPre);
    if (!pre) return malformed(metadata, format("{}: expected a string", kPre));
    shown = name = *pre;
  }
  if (const SplitFamily* family = split_family_named(name)) return family;
  const std::vector<std::string> known = split_family_names();
  const std::optional<std::string> near = nearest(name, known);
  std::string all;
  for (const std::string& k : known) all.append(all.empty() ? "" : ", ").append(k);
  return Error{Code::Unsupported,
               format("{}: {}: the pre-tokenizer {} is not known; {}", metadata.source(), kPre, quoted(name),
                      near ? format("the nearest known name is {}", quoted(*near)) : "known are " + all),
               "Text cut by other rules would give the model wrong tokens, so gimbal does not guess. Use a "
               "newer gimbal, or a model of a known family."};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_bpe(const Metadata& metadata, Vocabulary vocabulary) {
  std::string shown;
  const Result<const SplitFamily*> family = family_of(metadata, shown);
  if (!family) return family.error();
  const MetadataArray* merges = metadata.array(kMerges);
  if (!merges || merges->type != MetadataType::String)
    return malformed(metadata, format("{}: {}", kMerges,
                                      metadata.find(kMerges) ? "expected an array of strings"
                                                             : "missing; a BPE tokenizer needs merge rules"));
  if (merges->count > uint64_t(std::numeric_limits<int32_t>::max()))
    return malformed(metadata, format("{}: {} rules are too many", kMerges, merges->count));
  Result<Pretokenizer> pretokenizer = Pretokenizer::create(**family);
  if (!pretokenizer) return pretokenizer.error();

  Rules rules{*family, *std::move(pretokenizer), shown};
  if (metadata.string(kAlgorithm) == "whitespace") {
    rules.drops_spaces = true;
    rules.lowers = metadata.boolean("tokenizer.ggml.normalizer.lowercase").value_or(false);
  }
  if ((*family)->has(SplitFamily::IgnoresAddBos)) vocabulary.add_bos.reset();
  const Affixes around = bos_and_eos(vocabulary, (*family)->has(SplitFamily::AddsBos), false);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<Bpe>(std::move(vocabulary), around, merges->strings(), std::move(rules)));
}

}  // namespace gimbal
