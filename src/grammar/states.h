// Where in an automaton a text may be, as one number: made when it is first reached, so that a byte that was
// read there before costs a look into a table.
//
// A state is a list of nodes, each with the stacks of rules that are to be gone on with behind it. Stacks
// that end alike share their ends, and the stacks of a node are one set, so an ambiguous grammar makes sets
// larger, and not their number: the work for a byte grows with a power of the text's length at most.
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
  static constexpr State kDead = 0;  // no text goes on from here

  explicit States(std::shared_ptr<const Automaton>);

  State start() const { return start_; }
  // Behind one more byte.
  State next(State s, uint8_t byte) { return next_of_class(s, automaton_->class_of(byte)); }
  State next_of_class(State s, uint32_t c) {
    const State known = table_[(size_t(s) << class_bits_) + c];
    return known >= 0 ? known : compute(s, c);
  }
  bool may_end(State) const;  // the text is complete
  // Bytes until it is complete, at least.
  uint32_t shortest(State);
  const Automaton& automaton() const { return *automaton_; }

  // Steps that may be computed until the next call: those that led to states, so that neither pauses nor what
  // was known before changes what is too much. What comes after them is kDead, and exceeded() is true.
  void allow(size_t steps) { left_ = steps, exceeded_ = false; }
  bool exceeded() const { return exceeded_; }
  // Steps until a pause, whatever they led to. What comes after them is kDead until the next call, which goes
  // on with the states that were found.
  void pause_after(size_t steps) { until_pause_ = steps, paused_ = false; }
  bool paused() const { return paused_; }
  size_t until_pause() const { return until_pause_; }
  void spend_time(size_t steps) {
    paused_ |= steps > until_pause_;
    until_pause_ -= std::min(steps, until_pause_);
  }
  bool stopped() const { return exceeded_ || paused_; }  // an answer that is not to be used
  size_t bytes() const;                                  // of memory
  // Forgets all states but these, which get new numbers, in the same order.
  void keep(std::vector<State>& states);

 private:
  using Node = Automaton::Node;
  // What is on the stacks behind a node: a set of stacks, or that of a rule that begins at this place.
  using Stacks = uint32_t;
  static constexpr uint32_t kLocal = 1u << 31;
  struct Item {
    Node node;
    uint32_t count;  // of a loop
    Stacks stacks;
    bool operator==(const Item&) const = default;
  };
  struct Called {  // a rule, from this place
    std::vector<Item> returns;
    uint32_t set = Automaton::kNone;  // when it is known
  };

  State compute(State, uint32_t c);
  State close();  // what is in items_
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
  int class_bits_;   // of the number of a class
  Interner cells_;   // {node, count, set}: go on with the node, and behind it with one stack of the set
  Interner sets_;    // of cells, sorted
  Interner states_;  // {node, set} sorted by node; the first of all is the end of the text, if it may end
  std::vector<State> table_;               // by state and class; -1: not computed yet
  std::vector<uint32_t> shortest_of_set_;  // as far as they were asked for
  State start_ = kDead;
  size_t left_ = SIZE_MAX;
  bool exceeded_ = false;
  size_t spent_ = 0;  // for the state that is being made
  size_t until_pause_ = SIZE_MAX;
  bool paused_ = false;

  // Of close().
  std::vector<Item> todo_;
  std::vector<Item> seen_;  // open addressing; count kNone: free
  size_t seen_count_ = 0;
  std::vector<std::pair<Node, Stacks>> reading_;  // nodes with bytes to read, and the end
  std::vector<Called> called_;                    // by rule
  std::vector<uint32_t> touched_;                 // rules of called_
  std::vector<uint32_t> list_, cell_list_;
};

}  // namespace gimbal
