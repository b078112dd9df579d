// A text that a grammar constrains, while it is written: which tokens may come next. What may come can always
// be completed: there are no dead ends.
//
// Masks are found by walking the vocabulary's tree with the automaton, and kept for the states that come
// again. Not thread-safe; a copy goes on by itself, from the same place.
#pragma once
#include <bitset>
#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/states.h"
#include "grammar/token_tree.h"

namespace gimbal {

class Constraint {
 public:
  // A bit for each token of the vocabulary, 64 in a word from the lowest one on.
  using Mask = std::span<const uint64_t>;
  static bool allows(Mask mask, size_t token) {
    return token / 64 < mask.size() && (mask[token / 64] >> token % 64 & 1);
  }

  // Errors: those of Automaton::create(): no text of the grammar can be written in this vocabulary, among
  // them. Unsupported when no token of the vocabulary ends a text.
  static Result<Constraint> create(const Grammar&, std::shared_ptr<const TokenTree>);

  // The tokens that may come next. Those that end the text are among them where it is complete. Valid until
  // the next call. Errors: Usage when the grammar is so ambiguous that this takes too long.
  // `left`: so many tokens may be written from here on. Where the text can still be completed within them,
  // and a token that ends it told, only those behind which it still can; else as without it.
  Result<Mask> allowed(int left = INT_MAX);
  // Computes the mask for allowed(left) in pieces. True: allowed(left) returns at once, with the mask or an
  // error. False: `steps` was not enough; the next call continues. `steps`: in, the limit; out, what is left
  // of it. A step takes 10 to 40 ns.
  bool prepare(int left, size_t& steps);
  // The token becomes part of the text. Errors: Usage for one that is not allowed: nothing changes; as
  // allowed(). Behind a token that ends the text there are only such tokens.
  Status accept(Token token);
  // Accepts a token that allowed() admits. The work is done by the next prepare(), allowed() or rewind() to
  // behind the token; the first two also return its errors.
  void follow(Token token);
  bool may_end() const { return states_.may_end(path_.back()); }
  // Only where nothing else may come, tokens that end the text are allowed.
  void end_late(bool late) { ends_late_ = late, found_all_ = false; }

  // Tokens of the text; rewind() forgets those from `position` on.
  size_t position() const { return path_.size() - 1; }
  void rewind(size_t position);

 private:
  using State = States::State;
  struct Kept {
    State state;
    uint64_t used;
    std::vector<uint64_t> mask;
  };
  Constraint(States states, std::shared_ptr<const TokenTree> tree);

  enum Work { None, Following, Masking, Limiting };
  bool begin(Work);
  bool find(int left);
  bool find_mask();
  bool done(std::optional<Error> failed = {});
  void forget_work();
  void compute(State, std::vector<uint64_t>& mask);
  void walk(const TokenTree::Nodes&, State, std::vector<uint64_t>& mask);
  void leave_within(State, int bytes);
  State behind(State, Token);
  void add_ends();
  using Kinds = std::bitset<TokenTree::kPlainKinds>;
  bool find_plain(State, std::vector<uint64_t>& mask);
  bool read_plain(State, Kinds& refused);
  bool read_char(State, int utf8);
  void found(State);
  void tidy();

  States states_;
  std::shared_ptr<const TokenTree> tree_;
  std::vector<State> path_;   // before the text, and behind each token
  std::vector<State> walk_;   // by depth
  std::vector<State> found_;  // behind plain characters
  size_t found_before_ = 0;   // behind fewer characters
  bool found_again_ = false;  // one of those
  std::vector<Kept> kept_;
  std::vector<uint64_t> mask_, fresh_;  // with ends, or of few tokens that are left; while it is found
  // What find() is at, and what it found for `left_`: `failed_`, or mask_, or one of kept_.
  Work work_ = None;
  bool found_all_ = false, in_kept_ = false;
  int left_ = 0;
  size_t kept_at_ = 0;
  std::optional<Token> next_;  // of follow()
  std::optional<Error> failed_;
  std::vector<uint64_t> plain_;
  uint64_t clock_ = 0;
  size_t tidy_at_;
  bool ends_late_ = false;
};

}  // namespace gimbal
