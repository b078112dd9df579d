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

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, a visible space

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = out.append(text, done);
}

class Spm final : public VocabularyTokenizer {
 public:
  Spm(Vocabulary vocabulary, bool adds_space)
      : VocabularyTokenizer(std::move(vocabulary), true), adds_space_(adds_space) {
    bytes_.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      const Token id = vocabulary_.find(format("<0x{:02X}>", byte));
      if (id >= 0 && vocabulary_.type(id) == TokenType::Byte) bytes_[size_t(byte)] = id;
    }
  }

  std::string describe() const override { return format("SentencePiece, {} tokens", vocabulary_.size()); }

 private:
  bool adds_space() const override { return adds_space_; }

  // Tokens that text may become. Markers must not arise by merging: what a user types is not an instruction.
  Token token_of(std::string_view text) const {
    const Token id = vocabulary_.find(text);
    if (id < 0 || vocabulary_.is_control(id)) return -1;
    const TokenType type = vocabulary_.type(id);
    return type == TokenType::Unknown || type == TokenType::Byte ? -1 : id;
  }

  void encode_plain(std::string_view text, bool starts, std::vector<Token>& out) const override {
    std::string escaped = starts && adds_space_ ? " " : "";
    escaped += text;
    replace_all(escaped, " ", kSpace);
    const std::string_view all = escaped;
    SymbolMerger merger;
    for (size_t at = 0; at < all.size();) {
      const Utf8Step step = utf8_step(all, at);
      const uint32_t size = step.kind == Utf8Step::Whole ? step.bytes : 1;
      merger.add(uint32_t(at), size, token_of(all.substr(at, size)));
      at += size;
    }
    merger.run(
        [&](const Symbol& left, const Symbol& right) -> SymbolMerger::Merge {
          const Token id = token_of(all.substr(left.begin, left.size + right.size));
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

  std::string plain_piece(Token id) const override {
    std::string text(vocabulary_.text(id));
    if (vocabulary_.type(id) == TokenType::Byte)
      if (const int byte = byte_of_name(text); byte >= 0) return std::string(1, char(byte));
    replace_all(text, kSpace, " ");
    return text;
  }

  std::array<Token, 256> bytes_;
  const bool adds_space_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_spm(const Gguf& file, Vocabulary vocabulary) {
  if (!vocabulary.has_scores())
    return Error{Code::Malformed,
                 format("{}: tokenizer.ggml.scores: missing; tokenizer.ggml.model 'llama' merges by score",
                        file.path()),
                 "Convert the model again with a current converter."};
  // Files from before these keys existed use SentencePiece's usual names.
  const auto named = [&](const char* key, const char* name) {
    return file.find(key) ? -1 : vocabulary.find(name);
  };
  if (vocabulary.bos < 0) vocabulary.bos = named("tokenizer.ggml.bos_token_id", "<s>");
  if (vocabulary.eos < 0) vocabulary.eos = named("tokenizer.ggml.eos_token_id", "</s>");
  if (vocabulary.unknown < 0) vocabulary.unknown = named("tokenizer.ggml.unknown_token_id", "<unk>");
  const bool adds_space = file.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  return std::unique_ptr<Tokenizer>(std::make_unique<Spm>(std::move(vocabulary), adds_space));
}

}  // namespace gimbal
