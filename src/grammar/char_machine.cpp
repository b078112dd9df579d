#include "grammar/char_machine.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "grammar/interner.h"

namespace gimbal {
namespace {

constexpr size_t kMaxNodes = 200'000;       // of the NFA
constexpr size_t kMaxSetWork = 20'000'000;  // of the subset construction

Error too_large(std::string_view what) {
  return {Code::Usage, format("{} needs more than {} states", what, CharMachine::kMaxStates),
          "allow fewer repetitions, or leave a limit out"};
}

}  // namespace

// Builds an NFA from an expression without rules, then a DFA by subset
// construction.
class Determinizer {
 public:
  explicit Determinizer(const Grammar& grammar) : grammar_(grammar) {}

  Result<CharMachine> machine(Grammar::Id expr) {
    const uint32_t begin = node(), end = node();
    add(expr, begin, end);
    if (nodes_.size() > kMaxNodes) return too_large("the pattern");
    find_classes();
    CharMachine out;
    uint32_t first = begin;
    close({&first, 1});
    for (uint32_t s = 0; s < sets_.size(); s++) {
      const std::vector<uint32_t> set(sets_[s].begin(), sets_[s].end());
      out.states_.emplace_back();
      out.states_[s].accepts = std::binary_search(set.begin(), set.end(), end);
      for (const CharRange& c : classes_) {
        std::vector<uint32_t> reached;
        for (uint32_t n : set)
          for (const auto& [chars, to] : nodes_[n].reads)
            if (chars.low <= c.low && c.high <= chars.high) reached.push_back(to);
        work_ += set.size();
        if (reached.empty()) continue;
        const uint32_t to = close(reached);
        auto& arcs = out.states_[s].arcs;
        if (!arcs.empty() && arcs.back().to == to && arcs.back().chars.high + 1 == c.low)
          arcs.back().chars.high = c.high;
        else arcs.push_back({c, to});
      }
      if (sets_.size() > CharMachine::kMaxStates || work_ > kMaxSetWork) return too_large("the pattern");
    }
    out.trim();
    return out;
  }

 private:
  struct Node {
    std::vector<std::pair<CharRange, uint32_t>> reads;
    std::vector<uint32_t> skips;
  };

  uint32_t node() {
    nodes_.emplace_back();
    return uint32_t(nodes_.size() - 1);
  }

  void add(Grammar::Id id, uint32_t from, uint32_t to) {
    if (nodes_.size() > kMaxNodes) return;
    const Grammar::Expr& e = grammar_[id];
    switch (e.kind) {
      case Grammar::Expr::Chars:
        for (const CharRange& r : grammar_.ranges_of(e)) nodes_[from].reads.emplace_back(r, to);
        break;
      case Grammar::Expr::Choice:
        for (Grammar::Id item : grammar_.items_of(e)) add(item, from, to);
        break;
      case Grammar::Expr::Sequence:
        for (Grammar::Id item : grammar_.items_of(e)) {
          const uint32_t next = node();
          add(item, from, next);
          from = next;
        }
        nodes_[from].skips.push_back(to);
        break;
      case Grammar::Expr::Repeat: {
        for (uint32_t i = 0; i < e.min && nodes_.size() <= kMaxNodes; i++) {
          const uint32_t next = node();
          add(e.begin, from, next);
          from = next;
        }
        if (e.max == kUnbounded) {
          const uint32_t loop = node();
          nodes_[from].skips.push_back(loop);
          add(e.begin, loop, loop);
          from = loop;
        } else {
          for (uint32_t i = e.min; i < e.max && nodes_.size() <= kMaxNodes; i++) {
            const uint32_t next = node();
            nodes_[from].skips.push_back(to);
            add(e.begin, from, next);
            from = next;
          }
        }
        nodes_[from].skips.push_back(to);
        break;
      }
      case Grammar::Expr::Text:
        for (std::string_view text = grammar_.text_of(e); !text.empty();) {
          const uint32_t c = take_char(text), next = node();
          nodes_[from].reads.push_back({CharRange{c, c}, next});
          from = next;
        }
        nodes_[from].skips.push_back(to);
        break;
      default: break;  // there are no other kinds
    }
  }

  // Equivalence classes of characters: no edge distinguishes the characters of a class.
  void find_classes() {
    std::vector<uint32_t> begins{0, 0xd800, 0xe000, kLastChar + 1};
    for (const Node& n : nodes_)
      for (const auto& [chars, to] : n.reads) begins.push_back(chars.low), begins.push_back(chars.high + 1);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    for (size_t i = 0; i + 1 < begins.size(); i++)
      if (begins[i] < 0xd800 || begins[i] >= 0xe000) classes_.push_back({begins[i], begins[i + 1] - 1});
  }

  uint32_t close(std::span<const uint32_t> nodes) {
    std::vector<uint32_t> set(nodes.begin(), nodes.end());
    seen_.resize(nodes_.size());
    std::erase_if(set, [&](uint32_t n) { return seen_[n] || ((seen_[n] = true), false); });
    for (size_t i = 0; i < set.size(); i++)
      for (uint32_t next : nodes_[set[i]].skips)
        if (!seen_[next]) seen_[next] = true, set.push_back(next);
    for (uint32_t n : set) seen_[n] = false;
    work_ += set.size();
    std::sort(set.begin(), set.end());
    return sets_.number(set);
  }

  const Grammar& grammar_;
  std::vector<Node> nodes_;
  std::vector<CharRange> classes_;
  std::vector<bool> seen_;
  Interner sets_;
  size_t work_ = 0;
};

Result<CharMachine> CharMachine::pattern(std::string_view regex) {
  Grammar scratch;
  const auto expr = parse_regex(regex, scratch);
  if (!expr) return expr.error();
  return Determinizer(scratch).machine(*expr);
}

Result<CharMachine> CharMachine::of(const Grammar& grammar, Grammar::Id expr) {
  return Determinizer(grammar).machine(expr);
}

CharMachine CharMachine::of(std::vector<State> states) {
  CharMachine m;
  m.states_ = std::move(states);
  m.trim();
  return m;
}

CharMachine CharMachine::except(std::span<const std::string> texts) {
  CharMachine m;
  m.states_.resize(2);
  m.states_[1] = {{{{0, kLastChar}, 1}}, true};  // after a text that is no prefix
  m.states_[0].accepts = true;
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> known(2);  // character and state
  for (std::string_view text : texts) {
    uint32_t at = 0;
    while (!text.empty()) {
      const uint32_t c = take_char(text);
      const auto next =
          std::find_if(known[at].begin(), known[at].end(), [c](const auto& k) { return k.first == c; });
      if (next != known[at].end()) {
        at = next->second;
        continue;
      }
      known[at].emplace_back(c, uint32_t(m.states_.size()));
      at = uint32_t(m.states_.size());
      m.states_.push_back({{}, true});
      known.emplace_back();
    }
    m.states_[at].accepts = false;
  }
  for (size_t s = 0; s < m.states_.size(); s++) {
    if (s == 1) continue;
    std::vector<CharRange> taken;
    for (const auto& [c, to] : known[s]) m.states_[s].arcs.push_back({{c, c}, to}), taken.push_back({c, c});
    for (const CharRange& r : gimbal::complement(sorted(std::move(taken))))
      m.states_[s].arcs.push_back({r, 1});
    std::sort(m.states_[s].arcs.begin(), m.states_[s].arcs.end(),
              [](const Arc& a, const Arc& b) { return a.chars.low < b.chars.low; });
  }
  m.trim();
  return m;
}

Result<CharMachine> CharMachine::both(const CharMachine& other) const {
  CharMachine out;
  if (empty() || other.empty()) return out;
  Interner pairs;
  auto number = [&](uint32_t a, uint32_t b) {
    const uint32_t pair[] = {a, b};
    return pairs.number(pair);
  };
  number(0, 0);
  for (uint32_t s = 0; s < pairs.size(); s++) {
    if (s > kMaxStates) return too_large("an intersection of patterns");
    const State &a = states_[pairs[s][0]], &b = other.states_[pairs[s][1]];
    State made{{}, a.accepts && b.accepts};
    for (size_t i = 0, j = 0; i < a.arcs.size() && j < b.arcs.size();) {
      const CharRange x = a.arcs[i].chars, y = b.arcs[j].chars;
      const CharRange both{std::max(x.low, y.low), std::min(x.high, y.high)};
      if (both.low <= both.high) made.arcs.push_back({both, number(a.arcs[i].to, b.arcs[j].to)});
      if (x.high < y.high) i++;
      else j++;
    }
    out.states_.push_back(std::move(made));
  }
  out.trim();
  return out;
}

Result<CharMachine> CharMachine::of_length(uint32_t min, uint32_t max) const {
  if (min == 0 && max == kUnbounded) return *this;
  CharMachine out;
  if (empty()) return out;
  Interner pairs;
  auto number = [&](uint32_t state, uint32_t length) {
    const uint32_t pair[] = {state, max == kUnbounded ? std::min(length, min) : length};
    return pairs.number(pair);
  };
  number(0, 0);
  for (uint32_t s = 0; s < pairs.size(); s++) {
    if (s > kMaxStates) return too_large("a pattern together with minLength and maxLength");
    const uint32_t state = pairs[s][0], length = pairs[s][1];
    State made{{}, states_[state].accepts && length >= min};
    if (length < max)
      for (const Arc& a : states_[state].arcs) made.arcs.push_back({a.chars, number(a.to, length + 1)});
    out.states_.push_back(std::move(made));
  }
  out.trim();
  return out;
}

CharMachine CharMachine::complement() const {
  std::vector<State> states = states_;
  if (states.empty()) states.emplace_back();
  const uint32_t lost = uint32_t(states.size());
  for (State& s : states) {
    std::vector<CharRange> taken;
    for (const Arc& a : s.arcs) taken.push_back(a.chars);
    for (const CharRange& r : gimbal::complement(sorted(std::move(taken)))) s.arcs.push_back({r, lost});
    std::sort(s.arcs.begin(), s.arcs.end(),
              [](const Arc& a, const Arc& b) { return a.chars.low < b.chars.low; });
    s.accepts = !s.accepts;
  }
  states.push_back({{{{0, kLastChar}, lost}}, true});
  return of(std::move(states));
}

bool CharMachine::matches(std::string_view text) const {
  if (empty()) return false;
  uint32_t at = 0;
  while (!text.empty()) {
    const uint32_t c = take_char(text);
    const auto& arcs = states_[at].arcs;
    const auto arc = std::find_if(arcs.begin(), arcs.end(),
                                  [c](const Arc& a) { return a.chars.low <= c && c <= a.chars.high; });
    if (arc == arcs.end()) return false;
    at = arc->to;
  }
  return states_[at].accepts;
}

// Removes the states on no path to acceptance.
void CharMachine::trim() {
  std::vector<std::vector<uint32_t>> from(states_.size());
  for (uint32_t s = 0; s < states_.size(); s++)
    for (const Arc& a : states_[s].arcs) from[a.to].push_back(s);
  std::vector<bool> live(states_.size());
  std::vector<uint32_t> todo, number(states_.size());
  for (uint32_t s = 0; s < states_.size(); s++)
    if (states_[s].accepts) live[s] = true, todo.push_back(s);
  while (!todo.empty()) {
    const uint32_t s = todo.back();
    todo.pop_back();
    for (uint32_t f : from[s])
      if (!live[f]) live[f] = true, todo.push_back(f);
  }
  uint32_t kept = 0;
  for (uint32_t s = 0; s < states_.size(); s++) number[s] = live[s] ? kept++ : 0;
  if (states_.empty() || !live[0]) return states_.clear();
  for (uint32_t s = 0; s < states_.size(); s++) {
    if (!live[s]) continue;
    State state = std::move(states_[s]);
    std::erase_if(state.arcs, [&](const Arc& a) { return !live[a.to]; });
    for (Arc& a : state.arcs) a.to = number[a.to];
    states_[number[s]] = std::move(state);
  }
  states_.resize(kept);
}

}  // namespace gimbal
