// hot: every character of a text
// PLaMo 2's tokenizer: of all ways to write a text with tokens the one with the least cost, searched from the
// end. A character may also be written as its bytes, at a cost above that of any token. Costs are whole
// numbers, so that sums are exact; of equal ways the one that begins with the longest token counts. Preferred
// Networks, "tokenization_plamo.py" of PLaMo 2, 2025.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

constexpr double kUnits = 1e4;                   // of the cost, for a score of 1
constexpr int64_t kBytes = 10'000'000;           // the cost of a character in bytes
constexpr float kLeast = -2000, kMost = 200000;  // tokens with other scores are not used
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// How the best way from a place to the end of the text begins.
struct Start {
  int64_t cost = int64_t(1) << 60;
  uint32_t bytes = 0;
  Token token = -1;  // -1: in bytes
};

class Plamo2 final : public VocabularyTokenizer {
 public:
  Plamo2(Vocabulary vocabulary, Affixes around)
      : VocabularyTokenizer(std::move(vocabulary), around),
        bytes_(byte_tokens(vocabulary_)),
        tokens_(usable(vocabulary_)) {}

  std::string describe() const override { return format("PLaMo 2, {} tokens", vocabulary_.size()); }
  bool has_all_bytes() const { return std::find(bytes_.begin(), bytes_.end(), -1) == bytes_.end(); }

 private:
  static std::vector<PrefixTree::Entry> usable(const Vocabulary& vocabulary) {
    std::vector<PrefixTree::Entry> entries = plain_entries(vocabulary);
    std::erase_if(entries, [&](const PrefixTree::Entry& e) {
      return !(vocabulary.score(e.id) > kLeast && vocabulary.score(e.id) < kMost);
    });
    return entries;
  }

  bool adds_space() const override { return false; }

  // Invalid bytes count as characters without a token, so that they come back.
  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    std::vector<Start> starts(text.size() + 1);
    starts[text.size()].cost = 0;
    for (size_t at = 0; at < text.size(); at += starts[at].bytes)
      starts[at].bytes = utf8_step(text, at).bytes;
    for (size_t at = text.size(); at-- > 0;) {
      Start& best = starts[at];
      if (best.bytes == 0) continue;  // inside of a character
      best.cost = starts[at + best.bytes].cost + kBytes;
      // The shortest comes first, so that the longer one of equal ways replaces it.
      tokens_.each(text.substr(at), [&](size_t bytes, Token id) {
        const int64_t cost = starts[at + bytes].cost - std::llround(double(vocabulary_.score(id)) * kUnits);
        if (cost <= best.cost) best = {cost, uint32_t(bytes), id};
      });
    }
    for (size_t at = 0; at < text.size(); at += starts[at].bytes) {
      if (starts[at].token >= 0) out.push_back(starts[at].token);
      else
        for (const char c : text.substr(at, starts[at].bytes)) out.push_back(bytes_[uint8_t(c)]);
    }
  }

  std::string plain_piece(Token id) const override {
    const int byte = vocabulary_.type(id) == TokenType::Byte ? byte_of_name(vocabulary_.text(id)) : -1;
    return byte >= 0 ? std::string(1, char(byte)) : std::string(vocabulary_.text(id));
  }

  const std::array<Token, 256> bytes_;
  const PrefixTree tokens_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_plamo2(const Metadata& metadata, Vocabulary vocabulary) {
  vocabulary.name_special_ids(metadata, "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:unk|>");
  if (!vocabulary.has_scores())
    return Error{Code::Malformed,
                 format("{}: tokenizer.ggml.scores: missing; tokenizer.ggml.model 'plamo2' needs it",
                        metadata.source()),
                 "Convert the model again with a current converter."};
  const Affixes around = bos_and_eos(vocabulary, false, false);
  auto made = std::make_unique<Plamo2>(std::move(vocabulary), around);
  if (!made->has_all_bytes())
    return Error{Code::Malformed,
                 format("{}: tokenizer.ggml.tokens: some of the byte tokens <0x00> to <0xFF> are missing; "
                        "tokenizer.ggml.model 'plamo2' needs all of them",
                        metadata.source()),
                 "Convert the model again with a current converter."};
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace gimbal
