// hot: every word of a vocabulary
// Reads and checks the vocabulary of a model file. Keys: the GGUF specification, "Tokenizer" section.
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

#include "base/format.h"
#include "tokenizer/known_tokens.h"

namespace gimbal {
namespace {

// ---- Hashing and probing for TextTable.

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio (Knuth's multiplicative hashing)

uint64_t mix(uint64_t h) { return (h ^ h >> 32) * kOdd; }

// Eight bytes a step; most tokens are one or two steps.
uint64_t hash_of(std::string_view s) {
  uint64_t h = s.size() * kOdd;
  const char* p = s.data();
  size_t n = s.size();
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h ^ word);
  }
  uint64_t tail = 0;
  if (n >= 4) {
    uint32_t front, back;  // may overlap; together they see every byte
    std::memcpy(&front, p, 4);
    std::memcpy(&back, p + n - 4, 4);
    tail = uint64_t(front) << 32 | back;
  } else if (n) {
    tail = uint64_t(uint8_t(p[0])) << 16 | uint64_t(uint8_t(p[n / 2])) << 8 | uint8_t(p[n - 1]);
  }
  // Twice: after one round, similar short texts still have similar low bits, and then a search takes hundreds
  // of steps.
  h = mix(mix(h ^ tail));
  return h ^ h >> 32;
}

}  // namespace

TextTable::TextTable(const std::vector<std::string_view>& texts) {
  size_t bytes = 0;
  for (std::string_view t : texts) bytes += t.size();
  arena_.reserve(bytes);
  ends_.reserve(texts.size() + 1);
  ends_.push_back(0);
  slots_.resize(std::bit_ceil(texts.size() * 2 + 1));
  const size_t mask = slots_.size() - 1;
  for (std::string_view t : texts) {
    const int number = int(ends_.size()) - 1;
    arena_.append(t);
    ends_.push_back(uint32_t(arena_.size()));
    longest_ = std::max(longest_, t.size());
    if (t.empty()) continue;
    const uint64_t h = hash_of(t);
    for (size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.number < 0) {
        slot = {uint32_t(h >> 32), number};
        break;
      }
      if (slot.tag == uint32_t(h >> 32) && (*this)[slot.number] == t) break;
    }
  }
}

int TextTable::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return -1;
  const size_t mask = slots_.size() - 1;
  const uint64_t h = hash_of(text);
  for (size_t i = h & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number < 0) return -1;
    if (slot.tag == uint32_t(h >> 32) && (*this)[slot.number] == text) return slot.number;
  }
}

// ---- The vocabulary.

namespace {

// Of published vocabularies the longest token has 1,024 bytes. At each byte of a text, tokenizers read on for
// as long as a token may still match, so this bounds their time.
constexpr size_t kMaxTokenBytes = 4096;
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kStopIds[] = "tokenizer.gimbal.stop_token_ids";

Error malformed(const Metadata& metadata, std::string_view key, const std::string& problem) {
  return {Code::Malformed, format("{}: {}: {}", metadata.source(), key, problem),
          "The file's vocabulary is damaged or was written by a broken converter; get the model again."};
}

// An array that must have one element per token. A null result without error: the key is absent.
Result<const MetadataArray*> array_of(const Metadata& metadata, std::string_view key, uint64_t count) {
  if (!metadata.find(key)) return static_cast<const MetadataArray*>(nullptr);
  const MetadataArray* array = metadata.array(key);
  if (!array) return malformed(metadata, key, "expected an array with one element per token");
  if (array->count != count)
    return malformed(metadata, key,
                     format("expected {} elements, one per token, found {}", count, array->count));
  return array;
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const Metadata& metadata) {
  const MetadataArray* tokens = metadata.array(kTokens);
  if (!tokens || tokens->type != MetadataType::String)
    return malformed(metadata, kTokens,
                     metadata.find(kTokens) ? "expected an array of strings"
                                            : "missing; there is no vocabulary in this file");
  if (tokens->count == 0) return malformed(metadata, kTokens, "the vocabulary is empty");
  constexpr uint64_t kMax = std::numeric_limits<int32_t>::max();
  if (tokens->count > kMax || tokens->data.size() > std::numeric_limits<uint32_t>::max())
    return malformed(metadata, kTokens,
                     format("{} tokens of {} bytes are too many", tokens->count, tokens->data.size()));
  const auto texts = tokens->strings();
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() > kMaxTokenBytes)
      return malformed(
          metadata, kTokens,
          format("token {} has {} bytes, expected at most {}", i, texts[i].size(), kMaxTokenBytes));
  Vocabulary v(texts);
  if (Status s = v.read_types(metadata); !s) return s.error();
  if (Status s = v.read_scores(metadata); !s) return s.error();
  if (Status s = v.read_ids(metadata); !s) return s.error();
  v.mark_known_tokens();
  v.mark_strips(metadata);
  return v;
}

Status Vocabulary::read_types(const Metadata& metadata) {
  marks_.resize(size_t(size()));
  Result<const MetadataArray*> array = array_of(metadata, kTypes, uint64_t(size()));
  if (!array) return array.error();
  if (!*array) return Done{};  // an old file: all tokens are normal
  const std::vector<int64_t> types = (*array)->integers();
  if (types.size() != marks_.size()) return malformed(metadata, kTypes, "expected an array of integers");
  for (size_t i = 0; i < types.size(); ++i) {
    marks_[i].type = types[i] >= 1 && types[i] <= 6 ? TokenType(types[i]) : TokenType::Undefined;
    marks_[i].control = marks_[i].type == TokenType::Control;
  }
  return Done{};
}

Status Vocabulary::read_scores(const Metadata& metadata) {
  Result<const MetadataArray*> array = array_of(metadata, kScores, uint64_t(size()));
  if (!array) return array.error();
  if (!*array) return Done{};
  scores_ = (*array)->floats();
  if (scores_.size() != marks_.size()) return malformed(metadata, kScores, "expected an array of floats");
  for (size_t i = 0; i < scores_.size(); ++i)
    if (std::isnan(scores_[i]))
      return malformed(metadata, kScores, format("the score of token {} is not a number", i));
  return Done{};
}

Status Vocabulary::read_ids(const Metadata& metadata) {
  const auto read_id = [&](const char* name) -> Result<Token> {
    const std::string key = format("tokenizer.ggml.{}_token_id", name);
    const MetadataEntry* entry = metadata.find(key);
    if (!entry) return -1;
    const std::optional<uint64_t> id = metadata.unsigned_integer(key);
    const std::optional<double> number = metadata.number(key);
    // Converters write "none" as -1, which is 2^32-1 in an unsigned field.
    if ((number && *number == -1) || (id && *id == std::numeric_limits<uint32_t>::max())) return -1;
    if (!id) return malformed(metadata, key, "expected a token id");
    if (*id >= uint64_t(size()))
      return malformed(metadata, key,
                       format("expected an id below {}, the size of the vocabulary, found {}", size(), *id));
    return Token(*id);
  };
  Token ignored;
  const struct {
    const char* name;
    Token* id;
    bool stops;
  } fields[] = {{"bos", &bos, false},
                {"eos", &eos, true},
                {"unknown", &unknown, false},
                {"seperator", &separator, false},
                {"cls", &classification, false},
                {"eot", &ignored, true},
                {"eom", &ignored, true},
                {"fim_pad", &ignored, true},
                {"fim_rep", &ignored, true},
                {"fim_sep", &ignored, true}};
  for (const auto& field : fields) {
    Result<Token> id = read_id(field.name);
    if (!id) return id.error();
    *field.id = *id;
    if (field.stops && *id >= 0) marks_[size_t(*id)].stop = true;
  }
  // gimbal's own key, of folders whose generation_config.json names several ends.
  if (const MetadataArray* ends = metadata.array(kStopIds))
    for (const int64_t id : ends->integers())
      if (id >= 0 && id < size()) marks_[size_t(id)].stop = true;
  add_bos = metadata.boolean("tokenizer.ggml.add_bos_token");
  add_eos = metadata.boolean("tokenizer.ggml.add_eos_token");
  return Done{};
}

void Vocabulary::mark_known_tokens() {
  for (const KnownToken& known : kKnownTokens) {
    const Token id = find(known.text);
    if (id < 0) continue;
    marks_[size_t(id)].control = true;
    if (known.stops) marks_[size_t(id)].stop = true;
  }
  // If a turn has several messages, <|end|> ends a message and another token ends the turn.
  const bool harmony = find("<|return|>") >= 0 && find("<|call|>") >= 0;
  const bool solar = find("<|calls|>") >= 0 && find("<|flush|>") >= 0;
  const Token end = find("<|end|>");
  if ((harmony || solar) && end >= 0 && end != eos) marks_[size_t(end)].stop = false;
  // Gemma 4 ends nothing with </s>, which is HTML there.
  const Token html = find("</s>");
  if (find("<|tool_response>") >= 0 && html >= 0 && html != eos)
    marks_[size_t(html)] = {.type = TokenType::Normal};
}

void Vocabulary::name_special_ids(const Metadata& metadata, const char* bos_name, const char* eos_name,
                                  const char* unknown_name) {
  const auto name = [&](Token& id, const char* key, const char* text) {
    if (id < 0 && text && !metadata.find(key)) id = find(text);
  };
  name(bos, "tokenizer.ggml.bos_token_id", bos_name);
  name(eos, "tokenizer.ggml.eos_token_id", eos_name);
  name(unknown, "tokenizer.ggml.unknown_token_id", unknown_name);
}

// The GGUF format has no field for the whitespace that special tokens drop, so it depends on their names, as
// in llama.cpp: Phi-3's markers drop whitespace after them, masks of encoders before them.
void Vocabulary::mark_strips(const Metadata& metadata) {
  const auto named = [&](const char* key, std::initializer_list<std::string_view> parts) {
    std::string value(metadata.string(key).value_or(""));
    for (char& c : value)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return value.find(part) != std::string::npos; });
  };
  const auto strip_left = [&](const char* text) {
    if (const Token id = find(text); id >= 0) marks_[size_t(id)].strips_left = true;
  };
  if (named("tokenizer.ggml.pre", {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
      named("general.architecture", {"nomic-bert-moe", "jina-bert-v3"}))
    return strip_left("<mask>");
  if (named("general.name", {"modern-bert"})) return strip_left("[MASK]");
  if (!named("general.name", {"phi-3", "phi3", "phi 3"})) return;
  for (Token id = 0; id < size(); ++id) {
    Marks& m = marks_[size_t(id)];
    m.strips_right = m.control || m.type == TokenType::UserDefined || m.type == TokenType::Unknown;
  }
  for (const char* plain : {"<unk>", "<s>", "<|endoftext|>"})
    if (const Token id = find(plain); id >= 0) marks_[size_t(id)].strips_right = false;
}

}  // namespace gimbal
