// hot: every character of a text
// Unigram: of all ways to write a text as tokens, the one with the highest sum of scores. Kudo, "Subword
// regularization", 2018 (arXiv:1804.10959); the search goes from left to right over the ends of tokens
// (Viterbi).
#include <algorithm>
#include <limits>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

// How much worse an unknown character is than the worst token, as in SentencePiece.
constexpr double kUnknownPenalty = 10;

struct Spaces {
  bool adds;    // one before a text
  bool merges;  // runs count once, those at the end not at all
};

class Unigram final : public VocabularyTokenizer {
 public:
  Unigram(Vocabulary vocabulary, Around around, Charsmap charsmap, Spaces spaces)
      : VocabularyTokenizer(std::move(vocabulary), around),
        charsmap_(std::move(charsmap)),
        spaces_(spaces),
        tokens_(plain_entries(vocabulary_)),
        user_defined_(user_defined_entries(vocabulary_)) {
    float lowest = std::numeric_limits<float>::max();
    for (Token id = 0; id < vocabulary_.size(); ++id)
      if (vocabulary_.type(id) == TokenType::Normal) lowest = std::min(lowest, vocabulary_.score(id));
    unknown_score_ = float(lowest - kUnknownPenalty);
  }

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

  // How the best way to a place in the text ends there.
  struct End {
    double score = -std::numeric_limits<double>::max();
    uint32_t begin = 0;  // of its last token
    Token token = -1;
  };

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    const std::string all = normalized(text);
    std::vector<End> ends(all.size() + 1);
    ends[0].score = 0;
    for (size_t at = 0; at < all.size();) {
      const Utf8Step step = utf8_step(all, at);
      const double score = ends[at].score;
      const auto offer = [&](size_t bytes, double gain, Token token) {
        End& end = ends[at + bytes];
        if (score + gain > end.score) end = {score + gain, uint32_t(at), token};
      };
      bool known = false;  // the character alone is a token
      tokens_.each(std::string_view(all).substr(at), [&](size_t bytes, Token id) {
        known = known || bytes == step.bytes;
        offer(bytes, vocabulary_.type(id) == TokenType::UserDefined ? 0.0 : vocabulary_.score(id), id);
      });
      if (!known) offer(step.bytes, unknown_score_, vocabulary_.unknown);
      at += step.bytes;
    }
    // Back from the end; neighbouring unknown characters are one token.
    const size_t before = out.size();
    for (size_t at = all.size(); at > 0; at = ends[at].begin)
      if (ends[at].token != vocabulary_.unknown || out.size() == before || out.back() != vocabulary_.unknown)
        out.push_back(ends[at].token);
    std::reverse(out.begin() + long(before), out.end());
  }

  std::string plain_piece(Token id) const override { return unescaped_piece(id); }

  const Charsmap charsmap_;
  const Spaces spaces_;
  const PrefixTree tokens_, user_defined_;
  float unknown_score_;
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
  const Around around = bos_and_eos(vocabulary, false, true);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<Unigram>(std::move(vocabulary), around, *std::move(charsmap), spaces));
}

}  // namespace gimbal
