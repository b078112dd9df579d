// Texts beside grammars, byte by byte and token by token.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "base/format.h"
#include "grammar/constraint.h"
#include "grammar/grammar.h"

namespace gimbal::test {

enum class Fit { No, Beginning, Whole };  // of a text: none, of which there is more, complete

class Matcher {
 public:
  explicit Matcher(const Grammar& grammar) {
    auto automaton = Automaton::create(grammar);
    if (!automaton) {
      ADD_FAILURE() << automaton.error().message;
      automaton = Automaton::create(*Grammar::gbnf("root ::= \"\""));
    }
    states_.emplace(*std::move(automaton));
  }
  explicit Matcher(std::string_view gbnf) : Matcher(parsed(gbnf)) {}

  Fit fit(std::string_view text) { return fit(text, states_->start()); }
  // Behind a place, which becomes that behind the text.
  Fit fit(std::string_view text, States::State&& s) { return fit(text, s); }
  Fit fit(std::string_view text, States::State& s) {
    for (char c : text)
      if (s = states_->next(s, uint8_t(c)); s == States::kDead) return Fit::No;
    EXPECT_FALSE(states_->exceeded());
    return states_->may_end(s) ? Fit::Whole : Fit::Beginning;
  }
  bool matches(std::string_view text) { return fit(text) == Fit::Whole; }
  States& states() { return *states_; }

  static Grammar parsed(std::string_view gbnf) {
    auto grammar = Grammar::gbnf(gbnf);
    if (grammar) return *std::move(grammar);
    ADD_FAILURE() << grammar.error().message;
    return {};
  }

 private:
  std::optional<States> states_;
};

inline Grammar compiled(const std::string& schema) {
  auto g = json_schema_grammar(schema);
  EXPECT_TRUE(g) << schema << ": " << g.error().message;
  return g ? *std::move(g) : json_object_grammar();
}

// A text by taking any allowed token until the end, or `most` of them; fails the test where nothing is
// allowed. `ended`: whether it came to its end. `left`: the number of tokens within which the constraint must
// end.
inline std::string random_text(Constraint constraint, const TokenTree& tree, std::mt19937& random, int most,
                               bool* ended, int left = INT_MAX) {
  std::string text;
  *ended = false;
  for (int i = 0; i < most; i++) {
    const auto mask = constraint.allowed(left == INT_MAX ? left : left - i);
    EXPECT_TRUE(mask) << mask.error().message;
    if (!mask) return text;
    size_t count = 0;
    for (uint64_t word : *mask) count += size_t(__builtin_popcountll(word));
    EXPECT_NE(count, 0u) << "a dead end behind: " << text;
    if (count == 0) return text;
    size_t left = random() % count, w = 0;
    for (; left >= size_t(__builtin_popcountll((*mask)[w])); w++)
      left -= size_t(__builtin_popcountll((*mask)[w]));
    uint64_t bits = (*mask)[w];
    for (; left > 0; left--) bits &= bits - 1;
    const auto t = Token(w * 64 + size_t(__builtin_ctzll(bits)));
    const Status ok = constraint.accept(t);
    EXPECT_TRUE(ok) << ok.error().message;
    if (tree.is_end(t)) {
      *ended = true;
      return text;
    }
    text += tree.text(t);
  }
  return text;
}

// Alternatives that begin alike and not with literals: what somebody sends who wants others to wait.
inline std::string overlapping_grammar(int alternatives) {
  std::string all = "root ::= ";
  for (int i = 0; i < alternatives; i++)
    all +=
        format("{}[a-z ]{{{},500}} \"{}{}\"", i ? " | " : "", i, char('a' + i % 26), char('a' + i * 7 % 26));
  return all;
}

}  // namespace gimbal::test
