// WordPiece: text is cleaned and cut into words, and a word into the longest pieces that the vocabulary has,
// from left to right. Schuster and Nakajima, 2012; BERT's form: Devlin et al., 2018 (arXiv:1810.04805).
// Cleaning follows llama.cpp: accents are marks of any kind, and of a decomposed character the first one
// stays.
#include "base/format.h"
#include "tokenizer/letter_map.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

// Marks of ASCII that Unicode counts as symbols, and ideographs: each is a word.
#define SINGLES                                                                               \
  R"(\p{P}$+<=>^`|~\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f})" \
  R"(\x{2b740}-\x{2b81f}\x{2b920}-\x{2ceaf}\x{f900}-\x{faff}\x{2f800}-\x{2fa1f})"
constexpr SplitFamily kWords = {"WordPiece's words", {"[" SINGLES R"(]|[^\s)" SINGLES "]+"}};
constexpr SplitFamily kCleaned = {"WordPiece's cleaning", {R"((?:\s|[^\p{Cc}\p{Cf}\p{Co}\x{fffd}])+)"}};
constexpr SplitFamily kCleanedOfAccents = {"WordPiece's cleaning of accents",
                                           {R"((?:\s|[^\p{Cc}\p{Cf}\p{Co}\p{M}\x{fffd}])+)"}};

struct Cleaning {
  Pretokenizer kept, words;
  bool lowers, strips_accents;
};

class WordPiece final : public VocabularyTokenizer {
 public:
  WordPiece(Vocabulary vocabulary, Affixes around, Cleaning cleaning)
      : VocabularyTokenizer(std::move(vocabulary), around),
        cleaning_(std::move(cleaning)),
        lower_case_(LetterMap::lower_case()),
        without_accents_(LetterMap::without_accents()),
        pieces_(plain_entries(vocabulary_)) {}

  std::string describe() const override { return format("WordPiece, {} tokens", vocabulary_.size()); }

 private:
  bool adds_space() const override { return false; }

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    std::string letters;
    if (cleaning_.strips_accents) text = letters = without_accents_.apply(text);
    std::string clean;
    for (const std::string_view part : cleaning_.kept.matches(text)) clean += part;
    if (cleaning_.lowers) clean = lower_case_.apply(clean);
    std::string marked;
    for (const std::string_view word : cleaning_.words.matches(clean)) {
      marked.assign(kSpaceMark).append(word);
      append_word(marked, out);
    }
  }

  // A word that has no pieces to its end is one unknown token.
  void append_word(std::string_view word, std::vector<Token>& out) const {
    const size_t before = out.size();
    while (!word.empty()) {
      const PrefixTree::Longest piece = pieces_.longest(word);
      if (piece.id < 0) {
        out.resize(before);
        out.push_back(vocabulary_.unknown);
        return;
      }
      out.push_back(piece.id);
      word.remove_prefix(piece.bytes);
    }
  }

  std::string plain_piece(Token id) const override { return unescaped_piece(id); }

  const Cleaning cleaning_;
  const LetterMap lower_case_, without_accents_;
  const PrefixTree pieces_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_wordpiece(const Metadata& metadata, Vocabulary vocabulary) {
  vocabulary.name_special_ids(metadata, nullptr, nullptr, "[UNK]");
  const Token begin = vocabulary.bos >= 0              ? vocabulary.bos
                      : vocabulary.classification >= 0 ? vocabulary.classification
                                                       : vocabulary.find("[CLS]");
  const Token end = vocabulary.separator >= 0 ? vocabulary.separator : vocabulary.find("[SEP]");
  for (const auto& [id, name] :
       {std::pair{vocabulary.unknown, "unknown"}, std::pair{begin, "cls"}, std::pair{end, "seperator"}})
    if (id < 0)
      return Error{Code::Malformed,
                   format("{}: tokenizer.ggml.{}_token_id: missing, and no token has its usual name; "
                          "tokenizer.ggml.model 'bert' needs it",
                          metadata.source(), name),
                   "Convert the model again with a current converter."};
  vocabulary.bos = begin;
  const bool lowers = metadata.boolean("tokenizer.ggml.normalizer.lowercase").value_or(true);
  const bool strips = metadata.boolean("tokenizer.ggml.normalizer.strip_accents").value_or(lowers);
  Result<Pretokenizer> words = Pretokenizer::create(kWords);
  if (!words) return words.error();
  Result<Pretokenizer> kept = Pretokenizer::create(strips ? kCleanedOfAccents : kCleaned);
  if (!kept) return kept.error();
  // llama.cpp reads neither add_bos_token nor add_eos_token: encoders always get the text between both.
  return std::unique_ptr<Tokenizer>(
      std::make_unique<WordPiece>(std::move(vocabulary), Affixes{begin, end},
                                  Cleaning{*std::move(kept), *std::move(words), lowers, strips}));
}

}  // namespace gimbal
