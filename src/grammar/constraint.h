// Constrained decoding: the tokens that may come next in a text of a grammar. Every allowed prefix can be
// completed: there are no dead ends.
//
// Token masks are computed by walking the vocabulary's trie with the automaton, and cached per state. Not
// thread-safe; a copy continues independently from the same position.
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
  // One bit per token of the vocabulary, 64 per word, lowest bit first.
  using Mask = std::span<const uint64_t>;
  static bool allows(Mask mask, size_t token) {
    return token / 64 < mask.size() && (mask[token / 64] >> token % 64 & 1);
  }

  // Errors: those of Automaton::create(), for example if no text of the grammar can be written in this
  // vocabulary; Unsupported if the vocabulary has no end-of-text token.
  static Result<Constraint> create(const Grammar&, std::shared_ptr<const TokenTree>);

  // The tokens allowed next, including end-of-text tokens if the text is complete. Valid until the next call.
  // Errors: Usage if the grammar is too ambiguous to compute this in time. `left`: remaining token budget. If
  // the text can still be completed within it, end-of-text token included, only tokens that preserve this are
  // allowed; otherwise the budget is ignored.
  Result<Mask> allowed(int left = INT_MAX);
  // Computes the mask for allowed(left) in pieces. True: allowed(left) returns at once, with the mask or an
  // error. False: `steps` did not suffice; the next call continues. `steps`: in: the limit; out: the
  // remainder. A step takes 10 to 40 ns.
  bool prepare(int left, size_t& steps);
  // Appends the token to the text. Errors: Usage if it is not allowed, with no change; those of allowed().
  // After an end-of-text token, only end-of-text tokens are allowed.
  Status accept(Token token);
  // Appends a token that allowed() permits. The next prepare() or allowed() does the work and returns its
  // errors.
  void follow(Token token);
  bool may_end() const { return states_.may_end(path_.back()); }
  // Allow end-of-text tokens only if no other token is allowed.
  void end_late(bool late) { ends_late_ = late, found_all_ = false; }

  // Length of the text in tokens; rewind() removes the tokens from `position` on.
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
  std::vector<State> path_;   // before the text, and after each token
  std::vector<State> walk_;   // by depth in the trie
  std::vector<State> found_;  // states after plain characters
  size_t found_before_ = 0;   // states after fewer characters
  bool found_again_ = false;  // reached one of those
  std::vector<Kept> kept_;
  std::vector<uint64_t> mask_, fresh_;  // with end-of-text tokens, or for a small budget; under construction
  // Progress of find(), and its result for `left_`: `failed_`, or mask_, or one of kept_.
  Work work_ = None;
  bool found_all_ = false, in_kept_ = false;
  int left_ = 0;
  size_t kept_at_ = 0;
  std::optional<Token> next_;  // pending token of follow()
  std::optional<Error> failed_;
  std::vector<uint64_t> plain_;
  uint64_t clock_ = 0;
  size_t tidy_at_;
  bool ends_late_ = false;
};

}  // namespace gimbal
