#include "huggingface/tokenizer_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"
#include "huggingface/folder_files.h"
#include "huggingface/json_text.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/vocabulary_tokenizer.h"
#include "tokenizer/word_splitter.h"

namespace gimbal {
namespace {

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kGeneration = "generation_config.json";
constexpr uint64_t kMaxTokenizer = 256 << 20, kMaxSmall = 16 << 20;
constexpr int64_t kMaxTokens = 1 << 24;
constexpr std::string_view kMark = "\xe2\x96\x81";  // a space, in the vocabularies of SentencePiece

// Vocabulary and merges pass by; the tree has the rest.
class TokenizerJson final : public JsonText {
 public:
  struct Piece {
    std::string text;
    double value;  // the id, or for Unigram the score
  };
  std::vector<Piece> pieces;
  std::vector<std::string> merges;  // "left right"

 private:
  bool passes(const std::string& path) override { return path == "model.vocab" || path == "model.merges"; }
  void text(const std::string& path, int depth, const std::string&, std::string& value) override {
    const bool vocabulary = path == "model.vocab";
    if (vocabulary && depth == 2) pieces.push_back({std::move(value), 0});
    if (vocabulary) return;
    if (depth == 1) merges.push_back(std::move(value));
    // Two texts in a list of their own.
    if (depth == 2 && (second_ = !second_)) merges.push_back(std::move(value));
    else if (depth == 2 && !merges.empty()) merges.back() += " " + value;
  }
  void number(const std::string& path, int depth, const std::string& name, double value) override {
    if (path != "model.vocab") return;
    if (depth == 1) pieces.push_back({name, value});
    if (depth == 2 && !pieces.empty()) pieces.back().value = value;
  }
  bool second_ = false;
};

// The vocabulary in GGUF's form.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;

  std::optional<int64_t> find(std::string_view text) const {
    const auto at = std::find(texts.begin(), texts.end(), text);
    return text.empty() || at == texts.end() ? std::nullopt : std::optional<int64_t>(at - texts.begin());
  }
};

int32_t number_of(TokenType t) { return int32_t(t); }

class Adding {
 public:
  Adding(const TokenizerTexts& texts, const ModelConfig& config, int64_t rows, MetadataBuilder& out)
      : texts_(texts), folder_(texts.folder), config_(config), rows_(rows), out_(out) {}

  Status run() {
    if (!texts_.tokenizer)
      return Error{
          Code::Malformed, format("'{}' has no {}", escaped(folder_), kTokenizer),
          "Get the whole folder. Older models have other files: transformers' AutoTokenizer reads them, "
          "and its save_pretrained() writes tokenizer.json."};
    if (auto ok = json_.parse(*texts_.tokenizer, folder_ + "/" + kTokenizer); !ok) return ok;
    if (auto ok = parse(texts_.tokenizer_config, kTokenizerConfig, tokenizer_config_); !ok) return ok;
    if (auto ok = parse(texts_.generation_config, kGeneration, generation_); !ok) return ok;
    const Json& tree = json_.tree();
    model_ = tree.contains("model") && tree["model"].is_object() ? tree["model"] : Json::object();
    type_ = text_in(model_, "type");
    if (type_.empty()) type_ = json_.merges.empty() ? "WordPiece" : "BPE";  // older files
    model_["type"] = type_;
    if (auto ok = fill(); !ok) return ok;
    add_rules();
    add_special();
    add_templates();
    return Done{};
  }

 private:
  Status parse(const std::optional<std::string>& text, const char* name, Json& to) {
    to = Json::object();
    if (!text) return Done{};
    // The added tokens are in tokenizer.json, too.
    auto json = parse_json_object(*text, folder_ + "/" + name, "added_tokens_decoder");
    if (!json) return json.error();
    to = std::move(*json);
    return Done{};
  }
  Error wrong(const std::string& what) const {
    return {Code::Malformed, format("'{}/{}': {}", escaped(folder_), kTokenizer, what),
            "Get the model's folder again."};
  }
  static bool flag(const Json& json, const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_boolean() && at->get<bool>();
  }

  const Json& added() const {
    static const Json kNone = Json::array();
    const Json& tree = json_.tree();
    const auto at = tree.find("added_tokens");
    return at != tree.end() && at->is_array() ? *at : kNone;
  }

  // Ids of a vocabulary that is a map, or places in a list.
  Status fill() {
    const bool unigram = type_ == "Unigram";
    int64_t size = rows_;
    if (!size) size = int64_t(json_.pieces.size()) + int64_t(added().size());
    if (size <= 0 || size > kMaxTokens) return wrong(format("{} tokens", size));
    Tokens& t = tokens_;
    t.texts.resize(size_t(size)), t.types.assign(size_t(size), number_of(TokenType::Unused));
    if (unigram) t.scores.assign(size_t(size), 0);
    std::vector<bool> there(size_t(size), false);
    const bool falls_back = flag(model_, "byte_fallback");
    const std::string unknown = text_in(model_, "unk_token");
    for (size_t i = 0; i < json_.pieces.size(); i++) {
      const TokenizerJson::Piece& p = json_.pieces[i];
      const double id = unigram ? double(i) : p.value;
      if (!(id >= 0) || id >= double(kMaxTokens) || id != double(int64_t(id)))
        return wrong(format("token {} has the id {}", gimbal::quoted(p.text), id));
      if (id >= double(size)) continue;  // the model has no embedding of it
      const auto at = size_t(id);
      if (there[at]) return wrong(format("two tokens have the id {}", at));
      there[at] = true;
      t.texts[at] = p.text;
      t.types[at] = number_of(falls_back && byte_of_name(p.text) >= 0 ? TokenType::Byte
                              : p.text == unknown                     ? TokenType::Unknown
                                                                      : TokenType::Normal);
      if (unigram) t.scores[at] = float(p.value);
    }
    if (const auto id = model_.find("unk_id");
        unigram && id != model_.end() && id->is_number_unsigned() && id->get<uint64_t>() < uint64_t(size)) {
      unknown_ = int64_t(id->get<uint64_t>());
      t.types[size_t(unknown_)] = number_of(TokenType::Unknown);
    }
    for (const Json& a : added()) {
      const auto id = a.find("id");
      if (id == a.end() || !id->is_number_unsigned()) return wrong("an added token without an id");
      if (id->get<uint64_t>() >= uint64_t(size)) continue;
      const auto at = size_t(id->get<uint64_t>());
      const std::string content = text_in(a, "content");
      there[at] = true, t.texts[at] = content;
      added_.insert(at);
      if (t.types[at] == number_of(TokenType::Unknown)) continue;
      t.types[at] = number_of(flag(a, "special") ? TokenType::Control : TokenType::UserDefined);
    }
    for (size_t i = 0; i < there.size(); i++)
      if (!there[i]) t.texts[i] = format("[PAD{}]", i);
    if (type_ == "WordPiece") mark_words(there);
    if (type_ == "BPE" && falls_back) add_scores();
    return Done{};
  }

  // WordPiece: GGUF's form marks beginnings of words, not what follows inside them.
  void mark_words(const std::vector<bool>& there) {
    std::string inside = text_in(model_, "continuing_subword_prefix");
    if (inside.empty()) inside = "##";
    for (size_t i = 0; i < tokens_.texts.size(); i++) {
      std::string& text = tokens_.texts[i];
      if (!there[i] || added_.contains(i)) continue;
      if (text.starts_with(inside)) text.erase(0, inside.size());
      else text.insert(0, kMark);
    }
  }

  // SentencePiece's order of merges as scores: programs that do not know the rules go by them.
  void add_scores() {
    tokens_.scores.assign(tokens_.texts.size(), 0);
    std::map<std::string_view, size_t> ids;
    for (size_t i = 0; i < tokens_.texts.size(); i++) ids.emplace(tokens_.texts[i], i);
    std::vector<bool> scored(tokens_.texts.size(), false);
    std::string joined;
    for (size_t rank = 0; rank < json_.merges.size(); rank++) {
      const std::string& merge = json_.merges[rank];
      const size_t gap = merge.find(' ', 1);
      if (gap == merge.npos) continue;
      joined.assign(merge, 0, gap).append(merge, gap + 1);
      const auto id = ids.find(joined);
      if (id == ids.end() || scored[id->second]) continue;
      tokens_.scores[id->second] = -float(rank), scored[id->second] = true;
    }
    float next = -float(json_.merges.size());
    for (size_t i = 0; i < tokens_.texts.size(); i++)
      if (!scored[i] && tokens_.types[i] == number_of(TokenType::Normal)) tokens_.scores[i] = next--;
  }

  void add_rules() {
    const Json& tree = json_.tree();
    Json rules = Json::object();
    for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens"})
      if (tree.contains(name)) rules[name] = tree[name];
    rules["model"] = model_;
    out_.text(kRulesKey, dump(rules));

    const Json none;
    const auto splitter = WordSplitter::create(tree.contains("pre_tokenizer") ? tree["pre_tokenizer"] : none);
    const bool byte_level = splitter && splitter->byte_level();
    const char* algorithm = type_ == "Unigram"     ? "t5"
                            : type_ == "WordPiece" ? "bert"
                            : byte_level           ? "gpt2"
                                                   : "llama";
    out_.text("tokenizer.ggml.model", algorithm);
    if (splitter && !splitter->family().empty()) out_.text("tokenizer.ggml.pre", splitter->family());
    out_.strings("tokenizer.ggml.tokens", tokens_.texts);
    if (!tokens_.scores.empty())
      out_.numbers("tokenizer.ggml.scores", MetadataType::F32, std::span<const float>(tokens_.scores));
    out_.numbers("tokenizer.ggml.token_type", MetadataType::I32, std::span<const int32_t>(tokens_.types));
    if (type_ == "BPE") out_.strings("tokenizer.ggml.merges", json_.merges);
    if (type_ == "BPE" && !byte_level) out_.flag("tokenizer.ggml.add_space_prefix", adds_space(tree));
  }

  // Whether a space is put before a text.
  static bool adds_space(const Json& tree) {
    std::string all;
    for (const char* name : {"normalizer", "pre_tokenizer"})
      if (tree.contains(name)) all += dump(tree[name]);
    return all.find("\"Prepend\"") != all.npos || all.find("\"prepend_scheme\":\"always\"") != all.npos ||
           all.find("\"prepend_scheme\":\"first\"") != all.npos ||
           all.find("\"add_prefix_space\":true") != all.npos;
  }

  // The text of a token that tokenizer_config.json names: a string, or an object with it.
  std::string named(const char* name) const {
    const auto at = tokenizer_config_.find(name);
    if (at == tokenizer_config_.end()) return {};
    return at->is_string() ? at->get<std::string>() : text_in(*at, "content");
  }
  // Ids of generation_config.json, else config.json: one or a list.
  std::vector<int64_t> ids(const char* name) {
    std::vector<int64_t> all;
    const auto at = generation_.find(name);
    if (at != generation_.end() && !at->is_null()) {
      for (const Json& id : at->is_array() ? *at : Json::array({*at}))
        if (id.is_number_unsigned() && id.get<uint64_t>() < tokens_.texts.size())
          all.push_back(int64_t(id.get<uint64_t>()));
    } else {
      ModelConfig quiet = config_;  // a value of another kind is no reason to refuse the model
      for (const double id : quiet.numbers({name}))
        if (id >= 0 && id < double(tokens_.texts.size())) all.push_back(int64_t(id));
      ModelConfig one = config_;
      if (const int64_t id = one.count({name}, -1);
          all.empty() && !one.error() && id >= 0 && id < int64_t(tokens_.texts.size()))
        all.push_back(id);
    }
    return all;
  }

  // Of the unknown token: the model's own, because without one nothing becomes it.
  int64_t unknown() const {
    return unknown_ >= 0 ? unknown_ : tokens_.find(text_in(model_, "unk_token")).value_or(-1);
  }
  int64_t special(const char* text, const char* id) {
    const int64_t named_one = tokens_.find(named(text)).value_or(-1);
    if (named_one >= 0 || !id) return named_one;
    const auto all = ids(id);
    return all.empty() ? -1 : all.front();
  }

  void add_special() {
    const auto add = [&](const char* name, int64_t id) {
      if (id >= 0) out_.u32(format("tokenizer.ggml.{}_token_id", name), uint64_t(id));
    };
    add("bos", special("bos_token", "bos_token_id"));
    add("eos", special("eos_token", "eos_token_id"));
    add("unknown", unknown());
    add("padding", special("pad_token", nullptr));
    add("seperator", special("sep_token", nullptr));  // as GGUF spells it
    add("cls", special("cls_token", nullptr));
    add("mask", special("mask_token", nullptr));
    std::vector<int32_t> ends;
    for (const int64_t id : ids("eos_token_id")) ends.push_back(int32_t(id));
    if (ends.size() > 1)
      out_.numbers("tokenizer.gimbal.stop_token_ids", MetadataType::I32, std::span<const int32_t>(ends));
    const auto around = edges();
    out_.flag("tokenizer.ggml.add_bos_token", around.first);
    out_.flag("tokenizer.ggml.add_eos_token", around.second);
  }

  // Whether the post-processor puts tokens before and behind a text.
  std::pair<bool, bool> edges() const {
    const Json& tree = json_.tree();
    std::pair<bool, bool> out{};
    if (!tree.contains("post_processor")) return out;
    std::vector<const Json*> open{&tree["post_processor"]};
    while (!open.empty()) {
      const Json& p = *open.back();
      open.pop_back();
      const std::string type = text_in(p, "type");
      if (type == "Sequence" && p.contains("processors") && p["processors"].is_array())
        for (const Json& one : p["processors"]) open.push_back(&one);
      if (type == "BertProcessing" || type == "RobertaProcessing") out = {true, true};
      if (type != "TemplateProcessing" || !p.contains("single") || !p["single"].is_array()) continue;
      bool behind = false;
      for (const Json& part : p["single"]) {
        if (part.is_object() && part.contains("Sequence")) behind = true;
        else (behind ? out.second : out.first) = true;
      }
    }
    return out;
  }

  void add_templates() {
    if (texts_.chat_template) return out_.text("tokenizer.chat_template", *texts_.chat_template);
    const auto at = tokenizer_config_.find("chat_template");
    if (at == tokenizer_config_.end()) return;
    if (at->is_string()) out_.text("tokenizer.chat_template", at->get<std::string>());
    if (!at->is_array()) return;
    for (const Json& one : *at) {
      const std::string name = text_in(one, "name"), text = text_in(one, "template");
      if (name.empty() || text.empty()) continue;
      out_.text(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name, text);
    }
  }

  const TokenizerTexts& texts_;
  const std::string& folder_;
  const ModelConfig& config_;
  const int64_t rows_;
  MetadataBuilder& out_;
  TokenizerJson json_;
  Json tokenizer_config_, generation_, model_;
  std::string type_;
  Tokens tokens_;
  std::set<size_t> added_;
  int64_t unknown_ = -1;
};

}  // namespace

Result<TokenizerTexts> read_tokenizer_texts(const std::string& folder) {
  TokenizerTexts texts{folder, {}, {}, {}, {}};
  const struct {
    const char* name;
    std::optional<std::string>& to;
    uint64_t most;
  } files[] = {{kTokenizer, texts.tokenizer, kMaxTokenizer},
               {kTokenizerConfig, texts.tokenizer_config, kMaxSmall},
               {kGeneration, texts.generation_config, kMaxSmall},
               {"chat_template.jinja", texts.chat_template, kMaxSmall}};
  for (const auto& f : files) {
    const std::string path = folder + "/" + f.name;
    if (!file_exists(path)) continue;
    auto text = read_file(path, f.most);
    if (!text) return text.error();
    f.to = std::move(*text);
  }
  return texts;
}

Status add_tokenizer(const TokenizerTexts& texts, const ModelConfig& config, int64_t rows,
                     MetadataBuilder& out) {
  return Adding(texts, config, rows, out).run();
}

}  // namespace gimbal
