// The added tokens of a published tokenizer: found in a text before anything else, the leftmost first and of
// those the longest. They may take white space around them along.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/prefix_tree.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

struct AddedToken {
  Token id;
  std::string text;
  bool special = false;                          // a control token
  bool normalized = false;                       // looked for in the normalised text
  bool takes_left = false, takes_right = false;  // white space
  bool whole_word = false;                       // not within a word
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Part {
    Token token;  // -1: plain text
    size_t begin, end;
  };
  // The text in parts, without what tokens take along. `allowed(token, begin, end)`: whether a token may be
  // found there.
  template <class Allowed>
  std::vector<Part> split(std::string_view text, Allowed&& allowed) const {
    std::vector<Part> parts;
    size_t done = 0;
    if (!tokens_.empty())
      for (size_t at = 0; at < text.size();) {
        const AddedToken* best = nullptr;
        tree_.each(text.substr(at), [&](size_t bytes, Token i) {
          const AddedToken& t = tokens_[size_t(i)];
          if (allowed(t, at, at + bytes) && (!t.whole_word || stands_alone(text, at, at + bytes))) best = &t;
        });
        if (!best) {
          at++;
          continue;
        }
        const size_t begin = best->takes_left ? before_spaces(text, at, done) : at;
        const size_t end =
            best->takes_right ? behind_spaces(text, at + best->text.size()) : at + best->text.size();
        if (begin > done) parts.push_back({-1, done, begin});
        parts.push_back({best->id, begin, end});
        done = at = end;
      }
    if (done < text.size()) parts.push_back({-1, done, text.size()});
    return parts;
  }

 private:
  static std::vector<PrefixTree::Entry> entries(const std::vector<AddedToken>&);
  static bool stands_alone(std::string_view text, size_t begin, size_t end);
  static size_t before_spaces(std::string_view text, size_t at, size_t least);
  static size_t behind_spaces(std::string_view text, size_t at);

  std::vector<AddedToken> tokens_;
  PrefixTree tree_;  // of indices
};

}  // namespace gimbal
