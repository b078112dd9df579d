// RWKV's tokenizer: the longest token at every place, over bytes that the vocabulary writes with escapes.
#include "base/format.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0; }

// \t, \n, \r and \xHH; any other character after a backslash stands for itself.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'x' && i + 2 < text.size()) {
      out += char(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

class Rwkv final : public VocabularyTokenizer {
 public:
  explicit Rwkv(Vocabulary vocabulary)
      : VocabularyTokenizer(std::move(vocabulary), {}),
        bytes_(bytes_of(vocabulary_)),
        tokens_(entries_of(vocabulary_, bytes_)) {}

  std::string describe() const override { return format("RWKV, {} tokens", vocabulary_.size()); }

 private:
  static std::vector<std::string> bytes_of(const Vocabulary& vocabulary) {
    std::vector<std::string> bytes;
    for (Token id = 0; id < vocabulary.size(); ++id) bytes.push_back(unescaped(vocabulary.text(id)));
    return bytes;
  }
  static std::vector<PrefixTree::Entry> entries_of(const Vocabulary& vocabulary,
                                                   const std::vector<std::string>& bytes) {
    std::vector<PrefixTree::Entry> entries;
    for (Token id = 0; id < vocabulary.size(); ++id)
      if (vocabulary.is_plain(id)) entries.push_back({bytes[size_t(id)], id});
    return entries;
  }

  bool adds_space() const override { return false; }

  void encode_plain(std::string_view text, bool, std::vector<Token>& out) const override {
    while (!text.empty()) {
      const PrefixTree::Longest token = tokens_.longest(text);
      if (const Token id = token.id >= 0 ? token.id : vocabulary_.unknown; id >= 0) out.push_back(id);
      text.remove_prefix(token.id >= 0 ? token.bytes : 1);
    }
  }

  std::string plain_piece(Token id) const override { return bytes_[size_t(id)]; }

  const std::vector<std::string> bytes_;
  const PrefixTree tokens_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_rwkv(const Metadata&, Vocabulary vocabulary) {
  return std::unique_ptr<Tokenizer>(std::make_unique<Rwkv>(std::move(vocabulary)));
}

}  // namespace gimbal
