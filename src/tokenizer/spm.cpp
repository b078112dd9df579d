// hot: every character of a text
// SentencePiece-style BPE: neighbours merge in the order of the merged token's score, over characters, with
// spaces written as U+2581 and bytes as the last resort. Kudo and Richardson, "SentencePiece", 2018
// (arXiv:1808.06226).
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/symbol_merger.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

class Spm final : public VocabularyTokenizer {
 public:
  Spm(Vocabulary vocabulary, Affixes around, bool adds_space)
      : VocabularyTokenizer(std::move(vocabulary), around),
        bytes_(byte_tokens(vocabulary_)),
        adds_space_(adds_space) {}

  std::string describe() const override { return format("SentencePiece, {} tokens", vocabulary_.size()); }

 private:
  bool adds_space() const override { return adds_space_; }

  void encode_plain(std::string_view text, bool starts, std::vector<Token>& out) const override {
    const std::string escaped =
        std::string(starts && adds_space_ ? kSpaceMark : "") + replaced(text, " ", kSpaceMark);
    const std::string_view all = escaped;
    SymbolMerger merger;
    for (size_t at = 0; at < all.size();) {
      const Utf8Step step = utf8_step(all, at);
      const uint32_t size = step.kind == Utf8Step::Whole ? step.bytes : 1;
      merger.add(uint32_t(at), size, vocabulary_.find_plain(all.substr(at, size)));
      at += size;
    }
    merger.run(
        [&](const Symbol& left, const Symbol& right) -> SymbolMerger::Merge {
          const Token id = vocabulary_.find_plain(all.substr(left.begin, left.size + right.size));
          return {id, id < 0 ? 0.0 : -double(vocabulary_.score(id))};
        },
        [&](const Symbol& symbol) {
          if (symbol.token >= 0) out.push_back(symbol.token);
          else append_bytes(all.substr(symbol.begin, symbol.size), out);
        });
  }

  // One token per byte; where the vocabulary lacks one, the unknown token stands for the whole character.
  void append_bytes(std::string_view character, std::vector<Token>& out) const {
    const size_t before = out.size();
    for (const char c : character) {
      const Token id = bytes_[uint8_t(c)];
      if (id < 0) {
        out.resize(before);
        if (vocabulary_.unknown >= 0) out.push_back(vocabulary_.unknown);
        return;
      }
      out.push_back(id);
    }
  }

  std::string plain_piece(Token id) const override { return unescaped_piece(id); }

  const std::array<Token, 256> bytes_;
  const bool adds_space_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_spm(const Metadata& metadata, Vocabulary vocabulary) {
  if (!vocabulary.has_scores())
    return Error{Code::Malformed,
                 format("{}: tokenizer.ggml.scores: missing; tokenizer.ggml.model 'llama' merges by score",
                        metadata.source()),
                 "Convert the model again with a current converter."};
  // Files from before these keys existed use SentencePiece's usual names.
  vocabulary.name_special_ids(metadata, "<s>", "</s>", "<unk>");
  const bool adds_space = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  const Affixes around = bos_and_eos(vocabulary, true, false);
  return std::unique_ptr<Tokenizer>(std::make_unique<Spm>(std::move(vocabulary), around, adds_space));
}

}  // namespace gimbal
