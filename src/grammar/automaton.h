// A grammar over bytes: for each rule a small network of nodes, whose edges are bytes, control tokens and
// calls of other rules. Nothing leads to where a text could not be completed. Immutable; shared by all texts
// of a grammar.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"

namespace gimbal {

class TokenTree;

class Automaton {
 public:
  using Node = uint32_t;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Edge {
    enum Kind : uint8_t { Bytes, Token, Empty, Call } kind;
    uint8_t low, high;  // Bytes: both included
    uint32_t rule;      // Call; Token: which of tokens()
    Node target;        // Call: where it goes on behind the rule
  };
  // A node that repeats a rule, and counts.
  struct Loop {
    uint32_t rule;
    uint32_t min, max;  // max may be kUnbounded
    Node exit;
  };

  // `vocabulary`: nullptr: every character can be written, and there are no tokens to name. Errors: Usage
  // when no text matches, when a rule begins with itself, when there are more than kMaxNodes or kMaxTokens,
  // and for a token that is not in the vocabulary or ends a text.
  static constexpr size_t kMaxNodes = 1 << 20, kMaxTokens = 64;
  static Result<std::shared_ptr<const Automaton>> create(const Grammar&,
                                                         const TokenTree* vocabulary = nullptr);

  Node start(uint32_t rule) const { return starts_[rule]; }
  bool may_be_empty(uint32_t rule) const { return shortest_[starts_[rule]] == 0; }
  // Callers at the same place of a text have a lower one.
  uint32_t rank(uint32_t rule) const { return ranks_[rule]; }
  uint32_t rules() const { return uint32_t(starts_.size()); }

  std::span<const Edge> edges(Node n) const {
    return std::span(edges_).subspan(first_edge_[n], first_edge_[n + 1] - first_edge_[n]);
  }
  bool ends(Node n) const { return ends_[n]; }  // the rule may end here
  // Bytes from here to the end of the rule, at least; of a loop that has not begun. kFar and more: very many.
  static constexpr uint32_t kFar = 1u << 30;
  uint32_t shortest(Node n) const { return shortest_[n]; }
  // Of a loop that was gone through `count` times.
  uint32_t shortest(Node n, uint32_t count) const;
  // Nothing but the end of the rule.
  bool only_ends(Node n) const {
    return ends_[n] && loops_of_[n] == kNone && first_edge_[n] == first_edge_[n + 1];
  }
  const Loop* loop(Node n) const { return loops_of_[n] == kNone ? nullptr : &loops_[loops_of_[n]]; }

  // Bytes that no edge tells apart have the same class.
  uint8_t class_of(uint8_t byte) const { return classes_[byte]; }
  int classes() const { return int(bytes_of_class_.size()); }
  uint8_t byte_of_class(int c) const { return bytes_of_class_[size_t(c)]; }  // one of them
  // The control tokens of the grammar. The k-th is read as one symbol, whose class is classes() + k.
  std::span<const int32_t> tokens() const { return tokens_; }

 private:
  friend class AutomatonBuilder;
  std::vector<Node> starts_;
  std::vector<uint32_t> ranks_;
  std::vector<bool> ends_;
  std::vector<uint32_t> first_edge_, loops_of_, shortest_;
  std::vector<Edge> edges_;
  std::vector<Loop> loops_;
  std::array<uint8_t, 256> classes_{};
  std::vector<uint8_t> bytes_of_class_;
  std::vector<int32_t> tokens_;
};

}  // namespace gimbal
