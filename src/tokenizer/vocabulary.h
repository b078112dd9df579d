// The tokens of a model file with text, type and score, and the special ids: everything that does not
// depend on the tokenization algorithm.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// The texts of a vocabulary in one arena, with a flat hash index from text to number: 10^5 texts must load in
// milliseconds, so there is no allocation per text.
class TextTable {
 public:
  // All the texts in order; text i gets number i. An empty text is kept but cannot be found; of equal texts
  // the first is found. The texts together must be smaller than 4 GiB, their number below 2^31.
  explicit TextTable(const std::vector<std::string_view>& texts);

  int size() const { return int(ends_.size()) - 1; }
  std::string_view operator[](int i) const {
    return std::string_view(arena_).substr(ends_[size_t(i)], ends_[size_t(i) + 1] - ends_[size_t(i)]);
  }
  int find(std::string_view text) const;       // -1 when absent
  size_t longest() const { return longest_; }  // bytes

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t number = -1;
  };
  std::string arena_;
  std::vector<uint32_t> ends_;  // text i is arena_[ends_[i], ends_[i + 1])
  std::vector<Slot> slots_;     // open addressing, a power of two, at most half full
  size_t longest_ = 0;
};

// tokenizer.ggml.token_type, numbers as in the file. Other numbers count as Undefined.
enum class TokenType : uint8_t { Undefined, Normal, Unknown, Control, UserDefined, Unused, Byte };

class Vocabulary {
 public:
  // Reads tokenizer.ggml.{tokens,token_type,scores,*_token_id,add_*_token}. Errors: Malformed, naming file
  // and key.
  static Result<Vocabulary> read(const Metadata& metadata);

  int size() const { return texts_.size(); }
  bool has(Token id) const { return id >= 0 && id < size(); }
  // The id must be one of the vocabulary's for all of these.
  std::string_view text(Token id) const { return texts_[id]; }  // as in the file: escaped
  TokenType type(Token id) const { return marks_[size_t(id)].type; }
  bool is_control(Token id) const { return marks_[size_t(id)].control; }  // by type or by a known name
  bool is_stop(Token id) const { return marks_[size_t(id)].stop; }
  bool strips_right(Token id) const {
    return marks_[size_t(id)].strips_right;
  }  // swallows whitespace after it
  bool strips_left(Token id) const { return marks_[size_t(id)].strips_left; }
  float score(Token id) const { return scores_.empty() ? 0.0f : scores_[size_t(id)]; }

  bool has_scores() const { return !scores_.empty(); }
  Token find(std::string_view text) const { return texts_.find(text); }  // -1 when absent
  // The same among tokens that plain text may become. Merging must not create markers, because user input
  // must not become an instruction.
  Token find_plain(std::string_view text) const {
    const Token id = find(text);
    return id >= 0 && is_plain(id) ? id : -1;
  }
  bool is_plain(Token id) const {
    return !is_control(id) && type(id) != TokenType::Unknown && type(id) != TokenType::Byte;
  }
  size_t longest() const { return texts_.longest(); }  // bytes of the longest text

  // Ids that the file does not mention, by the usual names of a kind of vocabulary; a null name: none.
  void name_special_ids(const Metadata& metadata, const char* bos, const char* eos, const char* unknown);

  Token bos = -1, eos = -1, unknown = -1;     // -1 if absent
  Token separator = -1, classification = -1;  // BERT's
  std::optional<bool> add_bos, add_eos;       // nullopt: not in the file

 private:
  struct Marks {
    TokenType type = TokenType::Normal;
    bool control = false, stop = false, strips_right = false, strips_left = false;
  };
  explicit Vocabulary(const std::vector<std::string_view>& texts) : texts_(texts) {}
  Status read_types(const Metadata& metadata);
  Status read_scores(const Metadata& metadata);
  Status read_ids(const Metadata& metadata);
  void mark_known_tokens();
  void mark_strips(const Metadata& metadata);

  TextTable texts_;
  std::vector<Marks> marks_;
  std::vector<float> scores_;
};

}  // namespace gimbal
