// How a text is scored: cut into windows of equal length, each computed alone. Of a window the second half is
// scored, so that every prediction has at least half a window before it: the method that published
// perplexities are made with.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/session.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

class ScoredWindows {
 public:
  static constexpr int kDefaultWindow = 512;  // tokens

  // A text shorter than `window` is one window; of a longer one the rest behind the last whole window is
  // dropped. Errors: Usage for fewer than 4 tokens, or a window of fewer.
  static Result<ScoredWindows> of(const Tokenizer&, std::string_view text, int window);

  int window() const { return window_; }  // tokens of one
  int windows() const { return windows_; }
  int first() const { return first_; }                      // windows of the text that limit() skipped
  int scored() const { return window_ - window_ / 2 - 1; }  // tokens of one
  // Keeps `most` windows from number `first` on. Errors: Usage if there is none.
  Status limit(int first, int most);
  // The tokens of one; its first token is BOS if the model wants one.
  std::vector<Token> tokens(int number) const;

  // The rows that a model computes: those that logits are needed of, or the results of all.
  enum class Rows { Scored, All };
  // Gets the logits of a scored token, and the token that follows it.
  using Sink = std::function<Status(std::span<const float> logits, Token next)>;
  // Computes one window in a session that it empties. Errors: those of Session::advance and of the sink.
  Status score(Session&, std::span<const Token> window, Rows, const Sink&) const;

 private:
  std::vector<Token> tokens_;
  int window_ = 0, windows_ = 0, first_ = 0;
  Token begin_ = -1;  // BOS; -1: none
};

}  // namespace gimbal
