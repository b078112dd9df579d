// Lazily built DFA states of an automaton (a pushdown recognizer): each state is a number, created when it is
// first reached. A known transition then costs one table look-up.
//
// A state is a graph-structured stack: a list of nodes, each with the set of return stacks below it. Stacks
// share common suffixes, and the stacks of a node form one set, so ambiguity makes the sets larger but not
// more numerous: the work per byte is at most polynomial in the length of the text.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/interner.h"

namespace gimbal {

class States {
 public:
  using State = int32_t;
  static constexpr State kDead = 0;  // no continuation is valid

  explicit States(std::shared_ptr<const Automaton>);

  State start() const { return start_; }
  // The state after one more byte.
  State next(State s, uint8_t byte) { return next_of_class(s, automaton_->class_of(byte)); }
  State next_of_class(State s, uint32_t c) {
    const State known = table_[(size_t(s) << class_bits_) + c];
    return known >= 0 ? known : compute(s, c);
  }
  bool may_end(State) const;  // the text is complete
  // Minimum number of bytes until it is complete.
  uint32_t shortest(State);
  const Automaton& automaton() const { return *automaton_; }

  // Budget of steps until the next call. Only steps that lead to states count, so the limit does not depend
  // on pauses or on previously known states. Beyond it, states are kDead and exceeded() is true.
  void allow(size_t steps) { left_ = steps, exceeded_ = false; }
  bool exceeded() const { return exceeded_; }
  // Number of steps until a pause, all steps counted. Beyond it, states are kDead until the next call, which
  // continues with the states found so far.
  void pause_after(size_t steps) { until_pause_ = steps, paused_ = false; }
  bool paused() const { return paused_; }
  size_t until_pause() const { return until_pause_; }
  void spend_time(size_t steps) {
    paused_ |= steps > until_pause_;
    until_pause_ -= std::min(steps, until_pause_);
  }
  bool stopped() const { return exceeded_ || paused_; }  // the last result must not be used
  size_t bytes() const;                                  // memory use
  // Discards all states except these, which are renumbered in the same order.
  void keep(std::vector<State>& states);

 private:
  using Node = Automaton::Node;
  // The stacks below a node: a set of stacks, or those of a rule that begins at this position.
  using Stacks = uint32_t;
  static constexpr uint32_t kLocal = 1u << 31;
  struct Item {
    Node node;
    uint32_t count;  // of a loop
    Stacks stacks;
    bool operator==(const Item&) const = default;
  };
  struct Called {  // a rule called at this position
    std::vector<Item> returns;
    uint32_t set = Automaton::kNone;  // once it is known
  };

  State compute(State, uint32_t c);
  State close();  // of the nodes in items_
  void follow(Item);
  void push(Item);
  void call(uint32_t rule, Item behind);
  void resolve_calls();
  Stacks resolved(Stacks s) const { return s & kLocal ? called_[s & ~kLocal].set : s; }
  uint32_t set_of(std::vector<uint32_t>& cells);
  State state_of(std::span<const uint32_t> list);
  bool seen(const Item&);
  void spend(size_t steps) {
    spent_ += steps;
    exceeded_ |= spent_ > left_;
    spend_time(steps);
  }

  std::shared_ptr<const Automaton> automaton_;
  int class_bits_;            // log2 of the columns of table_
  Interner cells_;            // {node, count, set}: continue with the node, then with a stack of the set
  Interner sets_;             // of cells, sorted
  Interner states_;           // {node, set} sorted by node; first the end of the text, if it may end
  std::vector<State> table_;  // by state and class; -1: not computed yet
  std::vector<uint32_t> shortest_of_set_;  // computed on demand
  State start_ = kDead;
  size_t left_ = SIZE_MAX;
  bool exceeded_ = false;
  size_t spent_ = 0;  // for the state under construction
  size_t until_pause_ = SIZE_MAX;
  bool paused_ = false;

  // Used by close().
  std::vector<Item> todo_;
  std::vector<Item> seen_;  // open addressing; count kNone: free
  size_t seen_count_ = 0;
  std::vector<std::pair<Node, Stacks>> reading_;  // nodes with outgoing bytes, and the end
  std::vector<Called> called_;                    // by rule
  std::vector<uint32_t> touched_;                 // rules of called_
  std::vector<uint32_t> list_, cell_list_;
};

}  // namespace gimbal
