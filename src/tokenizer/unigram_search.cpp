// hot: every character of a text
#include "tokenizer/unigram_search.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

// How much worse an unknown character is than the worst token, as in SentencePiece.
constexpr double kUnknownPenalty = 10;

// How the best way to a place in the text ends there.
struct End {
  double score = -std::numeric_limits<double>::max();
  uint32_t begin = 0;  // of its last token
  Token token = -1;
};

}  // namespace

UnigramSearch::UnigramSearch(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), tokens_(plain_entries(vocabulary_)) {
  float lowest = std::numeric_limits<float>::max();
  for (Token id = 0; id < vocabulary_.size(); ++id)
    if (vocabulary_.type(id) == TokenType::Normal) lowest = std::min(lowest, vocabulary_.score(id));
  unknown_score_ = float(lowest - kUnknownPenalty);
}

std::vector<UnigramSearch::Piece> UnigramSearch::pieces(std::string_view all) const {
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
    tokens_.each(all.substr(at), [&](size_t bytes, Token id) {
      known = known || bytes == step.bytes;
      offer(bytes, vocabulary_.type(id) == TokenType::UserDefined ? 0.0 : vocabulary_.score(id), id);
    });
    if (!known) offer(step.bytes, unknown_score_, vocabulary_.unknown);
    at += step.bytes;
  }
  // Back from the end; neighbouring unknown characters are one piece.
  std::vector<Piece> out;
  for (size_t at = all.size(); at > 0; at = ends[at].begin) {
    const std::string_view text = all.substr(ends[at].begin, at - ends[at].begin);
    if (ends[at].token == vocabulary_.unknown && !out.empty() && out.back().token == vocabulary_.unknown)
      out.back().text = {text.data(), text.size() + out.back().text.size()};
    else out.push_back({ends[at].token, text});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void UnigramSearch::encode(std::string_view text, std::vector<Token>& out) const {
  for (const Piece& piece : pieces(text)) out.push_back(piece.token);
}

}  // namespace gimbal
