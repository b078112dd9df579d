// The pre-tokenizers of a published tokenizer (tokenizer.json): how a normalised text is cut into words,
// inside which the model finds its tokens.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

class WordSplitter {
 public:
  // `first`: the word is the beginning of the text.
  using Word = std::function<void(std::string_view word, bool first)>;
  class Stage {
   public:
    virtual ~Stage() = default;
    virtual void apply(std::string_view text, bool first, const Word& out) const = 0;
  };

  // The value of "pre_tokenizer": an object, or null for none. Errors: Unsupported, with the type; Malformed.
  static Result<WordSplitter> create(const Json&);
  // The words in order, none empty. They live until the call of `out` returns.
  void split(std::string_view text, bool first, const std::function<void(std::string_view)>& out) const;
  // The model gets bytes, written in GPT-2's alphabet (byte_alphabet.h); words here are the bytes as they
  // are.
  bool byte_level() const { return byte_level_; }
  // The family of split_families() whose expressions these are ("llama-bpe"); empty if none is known.
  const std::string& family() const { return family_; }

 private:
  Status add(const Json&, int depth);
  void run(size_t stage, std::string_view text, bool first,
           const std::function<void(std::string_view)>& out) const;

  std::vector<std::shared_ptr<const Stage>> stages_;
  bool byte_level_ = false;
  std::string family_;
};

}  // namespace gimbal
