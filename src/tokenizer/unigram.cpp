// hot: every character of a text
// Unigram as GGUF files have it: spaces and characters as SentencePiece treats them, then the search.

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/unigram_search.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

struct Spaces {
  bool adds;    // one before a text
  bool merges;  // runs count once, those at the end not at all
};

class Unigram final : public VocabularyTokenizer {
 public:
  Unigram(Vocabulary vocabulary, Affixes around, Charsmap charsmap, Spaces spaces)
      : VocabularyTokenizer(std::move(vocabulary), around),
        charsmap_(std::move(charsmap)),
        spaces_(spaces),
        search_(vocabulary_),
        user_defined_(user_defined_entries(vocabulary_)) {}

  std::string describe() const override { return format("Unigram, {} tokens", vocabulary_.size()); }

 private:
  static std::vector<PrefixTree::Entry> user_defined_entries(const Vocabulary& vocabulary) {
    std::vector<PrefixTree::Entry> entries;
    for (Token id = 0; id < vocabulary.size(); ++id)
      if (vocabulary.type(id) == TokenType::UserDefined) entries.push_back({vocabulary.text(id), id});
    return entries;
  }

  bool adds_space() const override { return spaces_.adds; }

  std::string normalized(std::string_view text) const {
    std::string out;
    bool in_word = false, prefixed = false;
    while (!text.empty()) {
      size_t read = user_defined_.longest(text).bytes;
      std::string_view part = text.substr(0, read);
      if (!read) {
        const Charsmap::Match match = charsmap_.longest(text);
        const Utf8Step step = utf8_step(text, 0);
        if (match.bytes) read = match.bytes, part = match.replacement;
        else if (step.kind == Utf8Step::Whole) read = step.bytes, part = text.substr(0, read);
        else read = 1, part = "\xef\xbf\xbd";
      }
      for (const char c : part) {
        if (c == ' ') {
          in_word = false;
          if (!spaces_.merges) out += kSpaceMark;
          continue;
        }
        if (!in_word && (spaces_.merges || (spaces_.adds && !prefixed))) {
          out += kSpaceMark;
          prefixed = true;
        }
        in_word = true;
        out += c;
      }
      text.remove_prefix(read);
    }
    return out;
  }

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    search_.encode(normalized(text), out);
  }

  std::string plain_piece(Token id) const override { return unescaped_piece(id); }

  const Charsmap charsmap_;
  const Spaces spaces_;
  const UnigramSearch search_;
  const PrefixTree user_defined_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_unigram(const Metadata& metadata, Vocabulary vocabulary) {
  vocabulary.name_special_ids(metadata, nullptr, "</s>", "<unk>");
  for (const auto& [there, key] :
       {std::pair{vocabulary.has_scores(), "scores"}, std::pair{vocabulary.unknown >= 0, "unknown_token_id"}})
    if (!there)
      return Error{Code::Malformed,
                   format("{}: tokenizer.ggml.{}: missing; tokenizer.ggml.model 't5' needs it",
                          metadata.source(), key),
                   "Convert the model again with a current converter."};
  Result<Charsmap> charsmap = Charsmap::read(metadata);
  if (!charsmap) return charsmap.error();
  const Spaces spaces = {
      .adds = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(false),
      .merges = metadata.boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(false)};
  const Affixes around = bos_and_eos(vocabulary, false, true);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<Unigram>(std::move(vocabulary), around, *std::move(charsmap), spaces));
}

}  // namespace gimbal
