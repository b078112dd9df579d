// A state is the remainder of the digits read so far, and how many of them stand behind the point. Most
// remainders that differ cannot be told apart by what may follow: 86400 needs a few hundred states. So the
// automaton is minimised (Moore's partition refinement) before it is used.
#include "grammar/decimal.h"

#include "base/format.h"
#include "grammar/interner.h"

namespace gimbal {
namespace {

constexpr uint64_t kMaxRemainders = 100'000;

class Remainders {
 public:
  Remainders(uint64_t factor, size_t parts) : m_(factor), parts_(parts) {
    for (size_t i = 0; i < parts; i++) scale_.push_back(i ? scale_.back() * 10 % m_ : 10 % m_);
  }
  uint32_t size() const { return uint32_t(m_ * (parts_ ? parts_ + 2 : 1)); }
  uint32_t lost() const { return size(); }

  // Phase 0: before the point; 1 + n: behind it and n digits.
  bool accepts(uint32_t s) const {
    const uint64_t phase = s / m_, rest = s % m_;
    if (phase == 1) return false;
    const size_t missing = parts_ - (phase ? phase - 1 : 0);
    return (missing ? rest * scale_[missing - 1] : rest) % m_ == 0;
  }
  uint32_t next(uint32_t s, uint32_t digit) const {
    const uint64_t phase = s / m_, rest = (s % m_ * 10 + digit) % m_;
    if (phase == 0) return uint32_t(rest);
    return phase - 1 == parts_ ? lost() : uint32_t((phase + 1) * m_ + rest);
  }
  uint32_t point(uint32_t s) const { return s < m_ && parts_ ? uint32_t(m_ + s) : lost(); }

 private:
  uint64_t m_;
  size_t parts_;
  std::vector<uint64_t> scale_;  // 10, 100, ... modulo m_
};

}  // namespace

Result<CharMachine> multiples_of(const Decimal& factor) {
  const auto number = digits_of(factor);
  const size_t parts = factor.part.size();
  if (!number || *number == 0 || *number > kMaxRemainders || *number * (parts + 2) > kMaxRemainders)
    return Error{Code::Usage, "'multipleOf' needs too large a grammar",
                 "use a smaller number, or one with fewer digits behind the point"};
  const Remainders all(*number, parts);
  const uint32_t n = all.size();
  std::vector<uint32_t> group(n + 1), finer(n + 1);
  for (uint32_t s = 0; s < n; s++) group[s] = all.accepts(s) ? 2 : 1;
  for (uint32_t groups = 0;;) {
    Interner kinds;
    const uint32_t none[12] = {};
    finer[n] = kinds.number(none);  // of the state that no text leaves
    for (uint32_t s = 0; s < n; s++) {
      uint32_t kind[12] = {group[s]};
      for (uint32_t d = 0; d < 10; d++) kind[1 + d] = group[all.next(s, d)];
      kind[11] = group[all.point(s)];
      finer[s] = kinds.number(kind);
    }
    group = finer;
    if (kinds.size() == groups) break;
    groups = kinds.size();
  }
  std::vector<CharMachine::State> states(1);  // the first: at the beginning
  std::vector<uint32_t> of_group(n + 2);
  for (uint32_t s = 0; s < n; s++)
    if (!of_group[group[s]]) of_group[group[s]] = uint32_t(states.size()), states.emplace_back();
  std::vector<bool> done(states.size());
  for (uint32_t s = 0; s < n; s++) {
    const uint32_t at = of_group[group[s]];
    if (done[at]) continue;
    done[at] = true;
    CharMachine::State& state = states[at];
    state.accepts = all.accepts(s);
    if (all.point(s) != n) state.arcs.push_back({{'.', '.'}, of_group[group[all.point(s)]]});
    for (uint32_t d = 0; d < 10 && all.next(s, d) != n; d++)
      state.arcs.push_back({{'0' + d, '0' + d}, of_group[group[all.next(s, d)]]});
  }
  const uint32_t first = of_group[group[0]];
  states[0].arcs.push_back({{'-', '-'}, first});
  for (const CharMachine::Arc& a : states[first].arcs)
    if (a.chars.low != '.') states[0].arcs.push_back(a);
  return CharMachine::of(std::move(states));
}

}  // namespace gimbal
