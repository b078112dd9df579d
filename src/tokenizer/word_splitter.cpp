// hot: every word of a text
#include "tokenizer/word_splitter.h"

#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

constexpr int kMaxSplitterDepth = 8;

// GPT-2's expression, which "ByteLevel" has built in.
constexpr char kByteLevelWords[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kWhitespaceWords[] =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}]+|[^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\s]+)";
constexpr char kPunctuation[] = R"([\p{P}$+<=>^`|~])";

// Published expressions and the names of their families in GGUF files.
struct KnownExpression {
  const char *expression, *family;
};
constexpr KnownExpression kKnown[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
    {kByteLevelWords, "gpt-2"},
};

enum class Behavior : uint8_t { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

struct Piece {
  size_t begin, end;
  bool match;
};

// Cuts a text at the matches of an expression or of a plain text.
class Split final : public WordSplitter::Stage {
 public:
  Split(std::shared_ptr<const Pretokenizer> expression, std::string plain, Behavior behavior, bool invert)
      : expression_(std::move(expression)), plain_(std::move(plain)), behavior_(behavior), invert_(invert) {}

  void apply(std::string_view text, bool first, const WordSplitter::Word& out) const override {
    for (const Piece& p : merged(pieces(text)))
      if (!(behavior_ == Behavior::Removed && p.match) && p.end > p.begin)
        out(text.substr(p.begin, p.end - p.begin), first && p.begin == 0);
  }

 private:
  std::vector<Piece> pieces(std::string_view text) const {
    std::vector<Piece> all;
    size_t done = 0;
    const auto found = [&](size_t begin, size_t end) {
      if (begin > done) all.push_back({done, begin, invert_});
      all.push_back({begin, end, !invert_});
      done = end;
    };
    if (expression_) {
      for (std::string_view m : expression_->matches(text)) {
        const auto at = size_t(m.data() - text.data());
        found(at, at + m.size());
      }
    } else {
      for (size_t at = text.find(plain_); at != text.npos; at = text.find(plain_, done))
        found(at, at + plain_.size());
    }
    if (done < text.size()) all.push_back({done, text.size(), invert_});
    return all;
  }

  std::vector<Piece> merged(std::vector<Piece> all) const {
    if (behavior_ == Behavior::Removed || behavior_ == Behavior::Isolated) return all;
    std::vector<Piece> out;
    const size_t n = all.size();
    bool before = false;
    for (size_t k = 0; k < n; k++) {
      const bool backwards = behavior_ == Behavior::MergedWithNext;
      const Piece& p = all[backwards ? n - 1 - k : k];
      const bool joins = behavior_ == Behavior::Contiguous ? p.match == before : p.match && !before;
      before = p.match;
      if (!joins || out.empty()) out.push_back(p);
      else if (backwards) out.back().begin = p.begin;
      else out.back().end = p.end;
    }
    if (behavior_ == Behavior::MergedWithNext) return {out.rbegin(), out.rend()};
    return out;
  }

  const std::shared_ptr<const Pretokenizer> expression_;  // null: plain_
  const std::string plain_;
  const Behavior behavior_;
  const bool invert_;
};

// A space before each part that has none.
class SpaceBefore final : public WordSplitter::Stage {
 public:
  void apply(std::string_view text, bool first, const WordSplitter::Word& out) const override {
    if (text.starts_with(' ')) return out(text, first);
    out(" " + std::string(text), first);
  }
};

// SentencePiece's spaces.
class Metaspace final : public WordSplitter::Stage {
 public:
  enum class Prepend : uint8_t { Never, First, Always };
  Metaspace(std::string mark, Prepend prepend, bool splits)
      : mark_(std::move(mark)), prepend_(prepend), splits_(splits) {}

  void apply(std::string_view text, bool first, const WordSplitter::Word& out) const override {
    std::string marked = replaced(text, " ", mark_);
    if (prepend_ == Prepend::Always || (prepend_ == Prepend::First && first))
      if (!marked.starts_with(mark_)) marked.insert(0, mark_);
    if (!splits_) return out(marked, first);
    const std::string_view all = marked;
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(
          all.find(mark_, begin + (all.substr(begin).starts_with(mark_) ? mark_.size() : 0)), all.size());
      out(all.substr(begin, end - begin), first && begin == 0);
      begin = end;
    }
  }

 private:
  const std::string mark_;
  const Prepend prepend_;
  const bool splits_;
};

}  // namespace

Result<WordSplitter> WordSplitter::create(const Json& json) {
  WordSplitter w;
  if (json.is_null()) return w;
  if (auto ok = w.add(json, 0); !ok) return ok.error();
  return w;
}

void WordSplitter::split(std::string_view text, bool first,
                         const std::function<void(std::string_view)>& out) const {
  run(0, text, first, out);
}

void WordSplitter::run(size_t stage, std::string_view text, bool first,
                       const std::function<void(std::string_view)>& out) const {
  if (text.empty()) return;
  if (stage == stages_.size()) return out(text);
  stages_[stage]->apply(text, first,
                        [&](std::string_view word, bool begins) { run(stage + 1, word, begins, out); });
}

Status WordSplitter::add(const Json& json, int depth) {
  const std::string type = text_in(json, "type");
  const auto flag = [&](const char* name, bool otherwise) {
    const auto at = json.find(name);
    return at != json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
  };
  const auto malformed = [&](const std::string& what) {
    return Error{Code::Malformed, format("pre-tokenizer {}: {}", gimbal::quoted(type), what), ""};
  };
  const auto by_expression = [&](const std::string& expression, Behavior behavior, bool invert) -> Status {
    for (const KnownExpression& k : kKnown)
      if (expression == k.expression) family_ = k.family;
    auto made = Pretokenizer::of_file(expression);
    if (!made) return made.error();
    stages_.push_back(std::make_shared<Split>(std::make_shared<const Pretokenizer>(*std::move(made)), "",
                                              behavior, invert));
    return Done{};
  };
  const auto behavior_of = [&](Behavior usual) -> Result<Behavior> {
    const std::string name = text_in(json, "behavior");
    if (name.empty()) return usual;
    for (const auto& [known, behavior] : {std::pair{"Removed", Behavior::Removed},
                                          {"Isolated", Behavior::Isolated},
                                          {"Contiguous", Behavior::Contiguous},
                                          {"MergedWithPrevious", Behavior::MergedWithPrevious},
                                          {"MergedWithNext", Behavior::MergedWithNext}})
      if (name == known) return behavior;
    return malformed(format("the behavior {} is not known", gimbal::quoted(name)));
  };
  if (byte_level_) return malformed("nothing may follow 'ByteLevel'");
  if (type == "Sequence") {
    const auto all = json.find("pretokenizers");
    if (all == json.end() || !all->is_array() || depth == kMaxSplitterDepth)
      return malformed("expected a list of pre-tokenizers");
    for (const Json& one : *all)
      if (auto ok = add(one, depth + 1); !ok) return ok;
    return Done{};
  }
  if (type == "ByteLevel") {
    if (flag("add_prefix_space", true)) stages_.push_back(std::make_shared<SpaceBefore>());
    if (flag("use_regex", true))
      if (auto ok = by_expression(kByteLevelWords, Behavior::Isolated, false); !ok) return ok;
    byte_level_ = true;
    return Done{};
  }
  if (type == "Split") {
    const auto behavior = behavior_of(Behavior::Isolated);
    if (!behavior) return behavior.error();
    const auto pattern = json.find("pattern");
    if (pattern == json.end()) return malformed("'pattern' is missing");
    if (const std::string plain = text_in(*pattern, "String"); !plain.empty()) {
      stages_.push_back(std::make_shared<Split>(nullptr, plain, *behavior, flag("invert", false)));
      return Done{};
    }
    return by_expression(text_in(*pattern, "Regex"), *behavior, flag("invert", false));
  }
  if (type == "Metaspace") {
    std::string mark = text_in(json, "replacement"), scheme = text_in(json, "prepend_scheme");
    if (mark.empty()) mark = kSpaceMark;
    if (scheme.empty()) scheme = flag("add_prefix_space", true) ? "always" : "never";
    stages_.push_back(std::make_shared<Metaspace>(mark,
                                                  scheme == "always"  ? Metaspace::Prepend::Always
                                                  : scheme == "first" ? Metaspace::Prepend::First
                                                                      : Metaspace::Prepend::Never,
                                                  flag("split", true)));
    return Done{};
  }
  if (type == "Whitespace") return by_expression(kWhitespaceWords, Behavior::Removed, true);
  if (type == "WhitespaceSplit") return by_expression(R"(\s)", Behavior::Removed, false);
  if (type == "BertPreTokenizer") {
    if (auto ok = by_expression(R"(\s)", Behavior::Removed, false); !ok) return ok;
    return by_expression(kPunctuation, Behavior::Isolated, false);
  }
  if (type == "Punctuation") {
    const auto behavior = behavior_of(Behavior::Isolated);
    if (!behavior) return behavior.error();
    return by_expression(kPunctuation, *behavior, false);
  }
  if (type == "Digits")
    return by_expression(R"(\p{N})",
                         flag("individual_digits", false) ? Behavior::Isolated : Behavior::Contiguous, false);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = text_in(json, "delimiter");
    if (delimiter.empty()) return malformed("'delimiter' is missing");
    stages_.push_back(std::make_shared<Split>(nullptr, delimiter, Behavior::Removed, false));
    return Done{};
  }
  return Error{Code::Unsupported, format("the pre-tokenizer {} is not known", gimbal::quoted(type)),
               "Use a newer gimbal, or a GGUF file of the model."};
}

}  // namespace gimbal
