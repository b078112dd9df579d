// hot: every token of a constrained answer
#include "grammar/states.h"

#include <algorithm>
#include <bit>

namespace gimbal {
namespace {

constexpr Automaton::Node kEnd = UINT32_MAX;  // a pseudo-node after the root: the text is complete
constexpr uint32_t kFree = UINT32_MAX;
constexpr size_t kMaxStateBytes = 64 << 20;
constexpr size_t kUsualItems = 1024;

}  // namespace

States::States(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)),
      class_bits_(std::bit_width(size_t(automaton_->classes()) + automaton_->tokens().size() - 1)),
      called_(automaton_->rules()) {
  seen_.assign(64, {0, kFree, 0});
  state_of({});  // kDead
  const uint32_t behind_all = sets_.number({});
  cell_list_ = {cells_.number(std::vector<uint32_t>{kEnd, 0, behind_all})};
  const uint32_t root = set_of(cell_list_);
  push({automaton_->start(0), 0, root});
  start_ = close();
}

// The end of the text is the largest node, so it is last in the list.
bool States::may_end(State s) const {
  const auto list = states_[uint32_t(s)];
  return !list.empty() && list[list.size() - 2] == kEnd;
}

// A set holds only sets that were created before it.
uint32_t States::shortest(State s) {
  const auto far = [](uint32_t a, uint32_t b) { return std::min(a + b, Automaton::kFar); };
  for (uint32_t set = uint32_t(shortest_of_set_.size()); set < sets_.size(); set++) {
    uint32_t least = sets_[set].empty() ? 0 : Automaton::kFar;
    for (uint32_t c : sets_[set]) {
      const auto cell = cells_[c];
      const uint32_t here = cell[0] == kEnd ? 0 : automaton_->shortest(cell[0], cell[1]);
      least = std::min(least, far(here, shortest_of_set_[cell[2]]));
    }
    shortest_of_set_.push_back(least);
  }
  uint32_t least = Automaton::kFar;
  const auto list = states_[uint32_t(s)];
  for (size_t i = 0; i < list.size(); i += 2) {
    const uint32_t here = list[i] == kEnd ? 0 : automaton_->shortest(list[i]);
    least = std::min(least, far(here, shortest_of_set_[list[i + 1]]));
  }
  return least;
}

size_t States::bytes() const {
  return cells_.bytes() + sets_.bytes() + states_.bytes() +
         (table_.size() + shortest_of_set_.size()) * sizeof(State);
}

States::State States::state_of(std::span<const uint32_t> list) {
  const uint32_t s = states_.number(list);
  if (size_t(s) << class_bits_ == table_.size())
    table_.resize(table_.size() + (size_t(1) << class_bits_), s ? -1 : kDead);
  return State(s);
}

uint32_t States::set_of(std::vector<uint32_t>& cells) {
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return sets_.number(cells);
}

States::State States::compute(State s, uint32_t c) {
  const auto classes = uint32_t(automaton_->classes());
  const uint8_t byte = c < classes ? automaton_->byte_of_class(int(c)) : 0;
  const auto reads = [&](const Automaton::Edge& e) {
    if (e.kind == Automaton::Edge::Token) return c == classes + e.rule;
    return c < classes && e.kind == Automaton::Edge::Bytes && e.low <= byte && byte <= e.high;
  };
  const auto list = states_[uint32_t(s)];
  spent_ = 0;
  spend(list.size());
  spend_time(4 * list.size());  // each is a cache miss
  if (stopped()) return kDead;
  for (size_t i = 0; i < list.size(); i += 2) {
    if (list[i] == kEnd) continue;
    for (const Automaton::Edge& e : automaton_->edges(list[i]))
      if (reads(e)) push({e.target, 0, list[i + 1]});
  }
  const State next = close();
  if (stopped()) return kDead;
  left_ -= spent_;
  table_[(size_t(s) << class_bits_) + c] = next;
  return next;
}

// The epsilon closure: all nodes reachable from those in todo_ without reading.
States::State States::close() {
  while (!todo_.empty() && !stopped()) {
    const Item item = todo_.back();
    todo_.pop_back();
    follow(item);
  }
  if (bytes() > kMaxStateBytes) exceeded_ = true;
  State made = kDead;
  if (!stopped() && !reading_.empty()) {
    resolve_calls();
    // Merge the stacks of each node into one set.
    for (auto& [node, stacks] : reading_) stacks = resolved(stacks);
    std::sort(reading_.begin(), reading_.end());
    list_.clear();
    for (size_t i = 0; i < reading_.size();) {
      const Node node = reading_[i].first;
      size_t end = i;
      while (end < reading_.size() && reading_[end].first == node) end++;
      uint32_t set = reading_[i].second;
      if (end > i + 1) {
        cell_list_.clear();
        for (size_t j = i; j < end; j++) {
          const auto cells = sets_[reading_[j].second];
          spend(cells.size());
          cell_list_.insert(cell_list_.end(), cells.begin(), cells.end());
        }
        set = set_of(cell_list_);
      }
      list_.push_back(node), list_.push_back(set);
      i = end;
    }
    made = state_of(list_);
  }
  for (uint32_t r : touched_) called_[r].returns.clear(), called_[r].set = Automaton::kNone;
  touched_.clear(), reading_.clear(), todo_.clear();
  seen_.assign(std::min(seen_.size(), kUsualItems), {0, kFree, 0});
  seen_count_ = 0;
  return made;
}

void States::follow(Item at) {
  const Automaton& a = *automaton_;
  spend(1);
  if (at.node == kEnd) {
    reading_.emplace_back(kEnd, at.stacks);
    return;
  }
  // A rule that was called here and ends here needs no work: its caller knows that it may be empty.
  if (a.ends(at.node) && !(at.stacks & kLocal)) {
    const auto cells = sets_[at.stacks];
    for (uint32_t c : cells) {
      const auto cell = cells_[c];
      push({cell[0], cell[1], cell[2]});
    }
    spend(cells.size());
  }
  bool reads = false;
  spend(a.edges(at.node).size());
  for (const Automaton::Edge& e : a.edges(at.node)) {
    if (e.kind == Automaton::Edge::Bytes || e.kind == Automaton::Edge::Token) {
      reads = true;
    } else if (e.kind == Automaton::Edge::Empty) {
      push({e.target, 0, at.stacks});
    } else {
      call(e.rule, {e.target, 0, at.stacks});
      if (a.may_be_empty(e.rule)) push({e.target, 0, at.stacks});
    }
  }
  if (reads) reading_.emplace_back(at.node, at.stacks);
  if (const Automaton::Loop* l = a.loop(at.node)) {
    if (at.count >= l->min || a.may_be_empty(l->rule)) push({l->exit, 0, at.stacks});
    if (at.count < l->max) {
      const uint32_t count = l->max == kUnbounded ? std::min(at.count + 1, l->min) : at.count + 1;
      call(l->rule, count == l->max ? Item{l->exit, 0, at.stacks} : Item{at.node, count, at.stacks});
    }
  }
}

// Tail call: if only the end of the rule follows the call, the callee gets the caller's stacks, so
// tail-recursive rules need no stack.
void States::call(uint32_t rule, Item behind) {
  const Automaton& a = *automaton_;
  if (a.only_ends(behind.node)) return push({a.start(rule), 0, behind.stacks});
  Called& c = called_[rule];
  if (c.returns.empty()) touched_.push_back(rule);
  c.returns.push_back(behind);
  push({a.start(rule), 0, kLocal | rule});
}

void States::resolve_calls() {
  std::sort(touched_.begin(), touched_.end(),
            [&](uint32_t x, uint32_t y) { return automaton_->rank(x) < automaton_->rank(y); });
  for (uint32_t r : touched_) {
    cell_list_.clear();
    for (const Item& i : called_[r].returns) {
      const uint32_t cell[] = {i.node, i.count, resolved(i.stacks)};
      cell_list_.push_back(cells_.number(cell));
    }
    called_[r].set = set_of(cell_list_);
  }
}

void States::push(Item item) {
  if (!seen(item)) todo_.push_back(item);
}

bool States::seen(const Item& item) {
  if ((seen_count_ + 1) * 2 > seen_.size()) {
    std::vector<Item> old(seen_.size() * 2, {0, kFree, 0});
    old.swap(seen_);
    seen_count_ = 0;
    for (const Item& i : old)
      if (i.count != kFree) seen(i);
  }
  uint64_t h = (uint64_t(item.node) << 32 | item.stacks) * 0x9e3779b97f4a7c15 ^ item.count;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9;
  size_t slot = size_t(h >> 32) & (seen_.size() - 1);
  for (; seen_[slot].count != kFree; slot = (slot + 1) & (seen_.size() - 1))
    if (seen_[slot] == item) return true;
  seen_[slot] = item;
  seen_count_++;
  return false;
}

// Sets and cells are created after their contents, so one pass down marks the reachable ones, and one pass up
// rebuilds them.
void States::keep(std::vector<State>& states) {
  std::vector<bool> needed(sets_.size()), needed_cells(cells_.size());
  auto need_state = [&](State s) {
    const auto list = states_[uint32_t(s)];
    for (size_t i = 1; i < list.size(); i += 2) needed[list[i]] = true;
  };
  need_state(start_);
  for (State s : states) need_state(s);
  for (uint32_t set = sets_.size(); set-- > 0;)
    if (needed[set])
      for (uint32_t cell : sets_[set]) needed_cells[cell] = true, needed[cells_[cell][2]] = true;

  Interner cells, sets;
  std::vector<uint32_t> new_set(sets_.size()), new_cell(cells_.size(), kFree), list;
  for (uint32_t set = 0; set < sets_.size(); set++) {
    if (!needed[set]) continue;
    list.clear();
    for (uint32_t cell : sets_[set]) {
      if (new_cell[cell] == kFree) {
        const auto old = cells_[cell];
        const uint32_t moved[] = {old[0], old[1], new_set[old[2]]};
        new_cell[cell] = cells.number(moved);
      }
      list.push_back(new_cell[cell]);
    }
    std::sort(list.begin(), list.end());
    new_set[set] = sets.number(list);
  }
  Interner old;
  std::swap(old, states_);
  cells_ = std::move(cells), sets_ = std::move(sets);
  table_.clear(), shortest_of_set_.clear();
  state_of({});
  auto moved = [&](State s) {
    list.assign(old[uint32_t(s)].begin(), old[uint32_t(s)].end());
    for (size_t i = 1; i < list.size(); i += 2) list[i] = new_set[list[i]];
    return state_of(list);
  };
  start_ = moved(start_);
  for (State& s : states) s = moved(s);
}

}  // namespace gimbal
