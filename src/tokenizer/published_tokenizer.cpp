// hot: every token of a text
// A tokenizer as its publisher describes it in tokenizer.json: added tokens, normaliser, pre-tokenizer,
// model, post-processor and decoder, each by the rules of the `tokenizers` library. The vocabulary and the
// merges are GGUF's keys; the rest is JSON under one key of gimbal's (vocabulary_tokenizer.h: kRulesKey),
// which folders and files converted from them have.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/symbol_merger.h"
#include "tokenizer/unigram_search.h"
#include "tokenizer/vocabulary_tokenizer.h"
#include "tokenizer/word_splitter.h"

namespace gimbal {
namespace {

constexpr size_t kMaxWord = size_t(1) << 30;  // bytes: algorithms count them in 32 bits

bool flag_in(const Json& json, const char* name, bool otherwise) {
  const auto at = json.find(name);
  return at != json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
}

// Tokens for the words that the pre-tokenizer leaves.
class WordModel {
 public:
  virtual ~WordModel() = default;
  virtual void encode(std::string_view word, std::vector<Token>& out) const = 0;
  virtual std::string describe() const = 0;
};

class BpeModel final : public WordModel {
 public:
  BpeModel(const Vocabulary& vocabulary, const std::vector<std::string_view>& merges, const Json& rules,
           bool byte_level)
      : vocabulary_(vocabulary),
        merges_(merges, vocabulary),
        byte_level_(byte_level),
        whole_words_(flag_in(rules, "ignore_merges", false)),
        fuses_unknown_(flag_in(rules, "fuse_unk", false)) {
    for (size_t byte = 0; byte < 256; byte++)
      bytes_[byte] = byte_level ? vocabulary.find_plain(letter_of_byte(uint8_t(byte))) : -1;
    if (!byte_level && flag_in(rules, "byte_fallback", false)) bytes_ = byte_tokens(vocabulary);
  }

  std::string describe() const override {
    return format("{}BPE, {} merges", byte_level_ ? "byte-level " : "", merges_.size());
  }

  void encode(std::string_view word, std::vector<Token>& out) const override {
    if (whole_words_ && word.size() <= vocabulary_.longest()) {
      std::string letters(word);
      if (byte_level_) {
        letters.clear();
        for (const char c : word) letters += letter_of_byte(uint8_t(c));
      }
      if (const Token whole = vocabulary_.find_plain(letters); whole >= 0) return out.push_back(whole);
    }
    SymbolMerger merger;
    for (size_t at = 0; at < word.size();) {
      const uint32_t size = byte_level_ ? 1 : utf8_step(word, at).bytes;
      merger.add(uint32_t(at), size,
                 byte_level_ ? bytes_[uint8_t(word[at])] : vocabulary_.find_plain(word.substr(at, size)));
      at += size;
    }
    bool unknown_before = false;
    merger.run(
        [&](const Symbol& left, const Symbol& right) -> SymbolMerger::Merge {
          const MergeTable::Merge merge = merges_.find(left.token, right.token);
          return {merge.token, double(merge.rank)};
        },
        [&](const Symbol& s) {
          const bool known = s.token >= 0 || append_bytes(word.substr(s.begin, s.size), out);
          if (s.token >= 0) out.push_back(s.token);
          if (!known && vocabulary_.unknown >= 0 && !(fuses_unknown_ && unknown_before))
            out.push_back(vocabulary_.unknown);
          unknown_before = !known;
        });
  }

 private:
  // Of a character without a token. False, and nothing appended, if a byte has none.
  bool append_bytes(std::string_view character, std::vector<Token>& out) const {
    if (byte_level_) return false;
    for (const char c : character)
      if (bytes_[uint8_t(c)] < 0) return false;
    for (const char c : character) out.push_back(bytes_[uint8_t(c)]);
    return true;
  }

  const Vocabulary& vocabulary_;
  const MergeTable merges_;
  const bool byte_level_, whole_words_, fuses_unknown_;
  std::array<Token, 256> bytes_;
};

class UnigramModel final : public WordModel {
 public:
  UnigramModel(const Vocabulary& vocabulary, const Json& rules)
      : vocabulary_(vocabulary), search_(vocabulary), falls_back_(flag_in(rules, "byte_fallback", false)) {
    if (falls_back_) bytes_ = byte_tokens(vocabulary);
  }

  std::string describe() const override { return "Unigram"; }

  void encode(std::string_view word, std::vector<Token>& out) const override {
    for (const auto& [token, text] : search_.pieces(word)) {
      const bool as_bytes =
          falls_back_ && token == vocabulary_.unknown &&
          std::all_of(text.begin(), text.end(), [&](char c) { return bytes_[uint8_t(c)] >= 0; });
      if (!as_bytes) out.push_back(token);
      else
        for (const char c : text) out.push_back(bytes_[uint8_t(c)]);
    }
  }

 private:
  const Vocabulary& vocabulary_;
  const UnigramSearch search_;
  const bool falls_back_;
  std::array<Token, 256> bytes_{};
};

// Words begin with the mark of a space in the vocabulary, and pieces inside them do not, as in GGUF files.
class WordPieceModel final : public WordModel {
 public:
  WordPieceModel(const Vocabulary& vocabulary, const Json& rules)
      : vocabulary_(vocabulary), pieces_(plain_entries(vocabulary)) {
    const auto most = rules.find("max_input_chars_per_word");
    if (most != rules.end() && most->is_number_unsigned()) most_characters_ = most->get<uint64_t>();
  }

  std::string describe() const override { return "WordPiece"; }

  // A word that has no pieces to its end is one unknown token.
  void encode(std::string_view word, std::vector<Token>& out) const override {
    const auto characters =
        uint64_t(std::count_if(word.begin(), word.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
    const size_t before = out.size();
    const std::string marked = std::string(kSpaceMark).append(word);
    for (std::string_view rest = marked; !rest.empty();) {
      const PrefixTree::Longest piece = pieces_.longest(rest);
      if (piece.id < 0 || characters > most_characters_) {
        out.resize(before);
        if (vocabulary_.unknown >= 0) out.push_back(vocabulary_.unknown);
        return;
      }
      out.push_back(piece.id);
      rest.remove_prefix(piece.bytes);
    }
  }

 private:
  const Vocabulary& vocabulary_;
  const PrefixTree pieces_;
  uint64_t most_characters_ = 100;
};

// What "post_processor" puts around a text.
struct Surroundings {
  std::vector<Token> before, after;
};

Error malformed(const std::string& what) {
  return {Code::Malformed, "tokenizer.json: " + what,
          "Get the model's folder again, or use a GGUF file of it."};
}

// The tokens of "special_tokens" in a template, by their names.
Result<std::vector<Token>> named_tokens(const Json& processor, const std::string& name, int size) {
  const auto all = processor.find("special_tokens");
  const auto one = all != processor.end() && all->is_object() ? all->find(name) : Json::const_iterator();
  if (all == processor.end() || !all->is_object() || one == all->end() || !one->is_object() ||
      !one->contains("ids") || !one->at("ids").is_array())
    return malformed(format("the post-processor has no token {}", gimbal::quoted(name)));
  std::vector<Token> ids;
  for (const Json& id : one->at("ids")) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= uint64_t(size))
      return malformed(
          format("the post-processor's token {} is not in the vocabulary", gimbal::quoted(name)));
    ids.push_back(Token(id.get<uint64_t>()));
  }
  return ids;
}

Status read_surroundings(const Json& processor, int size, Surroundings& out, int depth = 0) {
  if (processor.is_null()) return Done{};
  const std::string type = text_in(processor, "type");
  if (type == "ByteLevel") return Done{};
  if (type == "Sequence" && depth < 8) {
    const auto all = processor.find("processors");
    if (all == processor.end() || !all->is_array()) return malformed("a sequence without 'processors'");
    for (const Json& one : *all)
      if (auto ok = read_surroundings(one, size, out, depth + 1); !ok) return ok;
    return Done{};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const auto& [name, to] : {std::pair{"cls", &out.before}, {"sep", &out.after}}) {
      const auto pair = processor.find(name);
      if (pair == processor.end() || !pair->is_array() || pair->size() != 2 ||
          !(*pair)[1].is_number_unsigned() || (*pair)[1].get<uint64_t>() >= uint64_t(size))
        return malformed(format("the post-processor: '{}' is no token", name));
      to->push_back(Token((*pair)[1].get<uint64_t>()));
    }
    return Done{};
  }
  if (type == "TemplateProcessing") {
    const auto single = processor.find("single");
    if (single == processor.end() || !single->is_array()) return malformed("a template without 'single'");
    bool behind = false;
    for (const Json& part : *single) {
      if (part.is_object() && part.contains("Sequence")) {
        behind = true;
        continue;
      }
      if (!part.is_object() || !part.contains("SpecialToken"))
        return malformed("a template of unknown parts");
      const auto ids = named_tokens(processor, text_in(part.at("SpecialToken"), "id"), size);
      if (!ids) return ids.error();
      auto& to = behind ? out.after : out.before;
      to.insert(to.end(), ids->begin(), ids->end());
    }
    return Done{};
  }
  return Error{Code::Unsupported,
               format("tokenizer.json: the post-processor {} is not known", gimbal::quoted(type)), ""};
}

// How tokens become text again.
struct Decoding {
  bool letters = false;      // of GPT-2's alphabet
  std::string mark;          // what stands for a space; empty: nothing does
  bool drops_first = false;  // a space at the beginning of a text
};

Decoding read_decoding(const Json& decoder, const Json& pre_tokenizer, int depth = 0) {
  Decoding d;
  const std::string type = text_in(decoder, "type");
  if (type == "ByteLevel") d.letters = true;
  if (type == "Metaspace") {
    d.mark = text_in(decoder, "replacement");
    const std::string scheme = text_in(decoder, "prepend_scheme");
    d.drops_first = scheme.empty() ? flag_in(decoder, "add_prefix_space", true) : scheme != "never";
  }
  if (type == "WordPiece") d.mark = kSpaceMark, d.drops_first = true;
  if (type == "Replace" && text_in(decoder, "content") == " " && decoder.contains("pattern"))
    d.mark = text_in(decoder.at("pattern"), "String");
  if (type == "Strip" && decoder.contains("start") && decoder.at("start").is_number_unsigned())
    d.drops_first = decoder.at("start").get<uint64_t>() > 0;
  if (type == "Sequence" && depth < 8 && decoder.contains("decoders") && decoder.at("decoders").is_array())
    for (const Json& one : decoder.at("decoders")) {
      const Decoding part = read_decoding(one, pre_tokenizer, depth + 1);
      d.letters |= part.letters, d.drops_first |= part.drops_first;
      if (!part.mark.empty()) d.mark = part.mark;
    }
  return d;
}

class Published final : public Tokenizer {
 public:
  struct Rules {
    Normalizer normalizer;
    WordSplitter splitter;
    Surroundings around;
    Decoding decoding;
    std::vector<AddedToken> added;
  };
  // The model refers to the vocabulary, so it is set after construction.
  Published(Vocabulary vocabulary, Rules rules)
      : vocabulary_(std::move(vocabulary)),
        rules_(std::move(rules)),
        raw_(chosen(rules_.added, false)),
        normalized_(normalised(chosen(rules_.added, true), rules_.normalizer)) {}
  void set(std::unique_ptr<WordModel> model) { model_ = std::move(model); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Rules& rules() const { return rules_; }

  std::vector<Token> encode(std::string_view text, TokenizeOptions options) const override {
    std::vector<Token> out;
    if (options.add_bos) out = rules_.around.before;
    const auto in_plain = [&](size_t begin, size_t end) {
      const auto next = std::partition_point(options.plain.begin(), options.plain.end(),
                                             [&](const TextRange& r) { return r.end <= begin; });
      return next != options.plain.end() && next->begin < end;
    };
    const auto may_be = [&](const AddedToken& t, size_t begin, size_t end) {
      return !t.special || (options.parse_special && !in_plain(begin, end));
    };
    for (const AddedTokens::Part& part : raw_.split(text, may_be)) {
      if (part.token >= 0) {
        out.push_back(part.token);
        continue;
      }
      // Places in the normalised text are others: a part that user input touches is plain as a whole.
      const bool plain = in_plain(part.begin, part.end);
      const std::string normal =
          rules_.normalizer.apply(std::string(text.substr(part.begin, part.end - part.begin)));
      const auto allowed = [&](const AddedToken& t, size_t, size_t) {
        return !t.special || (options.parse_special && !plain);
      };
      for (const AddedTokens::Part& p : normalized_.split(normal, allowed)) {
        if (p.token >= 0) out.push_back(p.token);
        else
          encode_plain(std::string_view(normal).substr(p.begin, p.end - p.begin), part.begin + p.begin == 0,
                       out);
      }
    }
    if (options.add_bos) out.insert(out.end(), rules_.around.after.begin(), rules_.around.after.end());
    return out;
  }

  std::string piece(Token id, bool special) const override {
    if (!vocabulary_.has(id)) return {};
    const std::string_view text = vocabulary_.text(id);
    if (vocabulary_.is_control(id)) return special ? std::string(text) : std::string();
    switch (vocabulary_.type(id)) {
      case TokenType::Unknown: return special ? std::string(text) : std::string();
      case TokenType::UserDefined: return std::string(text);
      case TokenType::Byte:
        if (const int byte = byte_of_name(text); byte >= 0) return std::string(1, char(byte));
        return std::string(text);
      case TokenType::Normal:
        if (rules_.decoding.letters) return bytes_of_letters(text);
        return rules_.decoding.mark.empty() ? std::string(text) : replaced(text, rules_.decoding.mark, " ");
      default: return {};  // unused tokens have no text
    }
  }

  std::string decode(std::span<const Token> ids, bool special) const override {
    std::string text;
    bool begins = true;
    for (const Token id : ids) {
      text += piece(id, special);
      if (text.empty() || !begins) continue;
      begins = false;
      if (rules_.decoding.drops_first && text.front() == ' ') text.erase(0, 1);
    }
    return text;
  }

  int size() const override { return vocabulary_.size(); }
  Token bos() const override { return vocabulary_.bos; }
  Token eos() const override { return vocabulary_.eos; }
  bool adds_bos() const override { return !rules_.around.before.empty(); }
  bool is_stop(Token id) const override { return vocabulary_.has(id) && vocabulary_.is_stop(id); }
  bool is_control(Token id) const override { return vocabulary_.has(id) && vocabulary_.is_control(id); }
  std::string describe() const override {
    const std::string& family = rules_.splitter.family();
    return format("{} of tokenizer.json{}, {} tokens", model_->describe(),
                  family.empty() ? "" : " (" + family + ")", vocabulary_.size());
  }

 private:
  static std::vector<AddedToken> chosen(const std::vector<AddedToken>& all, bool normalized) {
    std::vector<AddedToken> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](const AddedToken& t) { return t.normalized == normalized; });
    return some;
  }
  static std::vector<AddedToken> normalised(std::vector<AddedToken> all, const Normalizer& normalizer) {
    for (AddedToken& t : all) t.text = normalizer.apply(std::move(t.text));
    return all;
  }

  void encode_plain(std::string_view text, bool first, std::vector<Token>& out) const {
    for (; !text.empty(); first = false) {
      const std::string_view part = text.substr(0, kMaxWord);
      rules_.splitter.split(part, first, [&](std::string_view word) { model_->encode(word, out); });
      text.remove_prefix(part.size());
    }
  }

  const Vocabulary vocabulary_;
  const Rules rules_;
  const AddedTokens raw_, normalized_;
  std::unique_ptr<WordModel> model_;
};

Result<std::vector<AddedToken>> read_added(const Json& rules, const Vocabulary& vocabulary) {
  std::vector<AddedToken> all;
  const auto list = rules.find("added_tokens");
  if (list == rules.end() || !list->is_array()) return all;
  for (const Json& t : *list) {
    const auto id = t.find("id");
    AddedToken token{-1, text_in(t, "content")};
    if (id == t.end() || !id->is_number_unsigned() || token.text.empty())
      return malformed("an added token without id or content");
    if (id->get<uint64_t>() >= uint64_t(vocabulary.size())) continue;  // the model has no embedding of it
    token.id = Token(id->get<uint64_t>());
    token.special = flag_in(t, "special", false) || vocabulary.is_control(token.id);
    token.normalized = flag_in(t, "normalized", !token.special);
    token.takes_left = flag_in(t, "lstrip", false), token.takes_right = flag_in(t, "rstrip", false);
    token.whole_word = flag_in(t, "single_word", false);
    all.push_back(std::move(token));
  }
  return all;
}

const Json& member(const Json& json, const char* name) {
  static const Json kNull;
  const auto at = json.find(name);
  return at == json.end() ? kNull : *at;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_published(const Metadata& metadata, Vocabulary vocabulary) {
  const auto in_file = [&](Error e) {
    e.message = format("{}: {}", metadata.source(), e.message);
    return e;
  };
  const Json json = parse_json(metadata.string(kRulesKey).value_or(""));
  if (!json.is_object() || !member(json, "model").is_object())
    return in_file(malformed(format("the rules ({}) are damaged", kRulesKey)));
  const Json& model = member(json, "model");
  Published::Rules rules;
  auto normalizer = Normalizer::create(member(json, "normalizer"));
  if (!normalizer) return in_file(normalizer.error());
  rules.normalizer = *std::move(normalizer);
  auto splitter = WordSplitter::create(member(json, "pre_tokenizer"));
  if (!splitter) return in_file(splitter.error());
  rules.splitter = *std::move(splitter);
  if (auto ok = read_surroundings(member(json, "post_processor"), vocabulary.size(), rules.around); !ok)
    return in_file(ok.error());
  rules.decoding = read_decoding(member(json, "decoder"), member(json, "pre_tokenizer"));
  auto added = read_added(json, vocabulary);
  if (!added) return in_file(added.error());
  rules.added = *std::move(added);

  auto made = std::make_unique<Published>(std::move(vocabulary), std::move(rules));
  const Vocabulary& v = made->vocabulary();
  const std::string type = text_in(model, "type");
  if (type == "BPE") {
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_in(model, name).empty())
        return in_file(
            {Code::Unsupported, format("tokenizer.json: BPE with '{}' is not computed", name), ""});
    const MetadataArray* merges = metadata.array("tokenizer.ggml.merges");
    if (!merges || merges->count > uint64_t(std::numeric_limits<int32_t>::max()))
      return in_file(malformed("BPE without merges"));
    made->set(std::make_unique<BpeModel>(v, merges->strings(), model, made->rules().splitter.byte_level()));
  } else if (type == "Unigram") {
    if (!v.has_scores() || v.unknown < 0)
      return in_file(malformed("Unigram without scores or an unknown token"));
    made->set(std::make_unique<UnigramModel>(v, model));
  } else if (type == "WordPiece") {
    made->set(std::make_unique<WordPieceModel>(v, model));
  } else {
    return in_file({Code::Unsupported,
                    format("tokenizer.json: the model {} is not known; known are BPE, Unigram and WordPiece",
                           gimbal::quoted(type)),
                    "Use a GGUF file of the model."});
  }
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace gimbal
