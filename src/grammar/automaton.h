// A grammar over bytes, compiled to a recursive transition network: a graph per rule, whose edges are bytes,
// control tokens and calls of other rules. Every node can reach the end of its rule. Immutable; shared by all
// texts of a grammar.
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
    uint8_t low, high;  // Bytes: an inclusive range
    uint32_t rule;      // Call; Token: index into tokens()
    Node target;        // Call: the node after the rule
  };
  // A node that repeats a rule a counted number of times.
  struct Loop {
    uint32_t rule;
    uint32_t min, max;  // max may be kUnbounded
    Node exit;
  };

  // `vocabulary`: nullptr: all characters are possible, and there are no tokens. Errors: Usage if no text
  // matches, if a rule is left-recursive, if there are more than kMaxNodes or kMaxTokens, and for a token
  // that is not in the vocabulary or ends a text.
  static constexpr size_t kMaxNodes = 1 << 20, kMaxTokens = 64;
  static Result<std::shared_ptr<const Automaton>> create(const Grammar&,
                                                         const TokenTree* vocabulary = nullptr);

  Node start(uint32_t rule) const { return starts_[rule]; }
  bool may_be_empty(uint32_t rule) const { return shortest_[starts_[rule]] == 0; }
  // If rules call each other at the same position of the text, the caller has the lower rank.
  uint32_t rank(uint32_t rule) const { return ranks_[rule]; }
  uint32_t rules() const { return uint32_t(starts_.size()); }

  std::span<const Edge> edges(Node n) const {
    return std::span(edges_).subspan(first_edge_[n], first_edge_[n + 1] - first_edge_[n]);
  }
  bool ends(Node n) const { return ends_[n]; }  // the rule may end here
  // Minimum bytes to the end of the rule; of a loop that has not begun. kFar and above: very many.
  static constexpr uint32_t kFar = 1u << 30;
  uint32_t shortest(Node n) const { return shortest_[n]; }
  // For a loop after `count` repetitions.
  uint32_t shortest(Node n, uint32_t count) const;
  // Only the end of the rule remains.
  bool only_ends(Node n) const {
    return ends_[n] && loops_of_[n] == kNone && first_edge_[n] == first_edge_[n + 1];
  }
  const Loop* loop(Node n) const { return loops_of_[n] == kNone ? nullptr : &loops_[loops_of_[n]]; }

  // Equivalence class of a byte: no edge distinguishes bytes of one class.
  uint8_t class_of(uint8_t byte) const { return classes_[byte]; }
  int classes() const { return int(bytes_of_class_.size()); }
  uint8_t byte_of_class(int c) const { return bytes_of_class_[size_t(c)]; }  // a representative
  // The grammar's control tokens. The k-th is a symbol of its own, with class classes() + k.
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
