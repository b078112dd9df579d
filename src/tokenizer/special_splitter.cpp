// hot: every character of a text
// The longest special at each place is a candidate; a queue settles which of the overlapping candidates hold.
#include "tokenizer/special_splitter.h"

#include <algorithm>
#include <queue>

namespace gimbal {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<PrefixTree::Entry> specials_of(const Vocabulary& vocabulary, SpecialSplitter::Kinds kinds) {
  std::vector<PrefixTree::Entry> specials;
  for (Token id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool user = type == TokenType::UserDefined;
    const bool hidden = vocabulary.is_control(id) || type == TokenType::Unknown;
    if (kinds == SpecialSplitter::Kinds::All ? !(user || hidden) : !user || hidden) continue;
    if (vocabulary.find(vocabulary.text(id)) != id) continue;  // empty, or a later one of equal texts
    specials.push_back({vocabulary.text(id), id});
  }
  return specials;
}

struct Candidate {
  size_t begin, size;
  Token id;
};

struct Match {
  size_t before;  // where plain text ends and continues: whitespace may be dropped on either side
  size_t begin, end;
  size_t after;
  Token id;
};

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, Kinds kinds)
    : vocabulary_(vocabulary), specials_(specials_of(vocabulary, kinds)) {}

std::vector<Fragment> SpecialSplitter::split(std::string_view text) const {
  const auto later = [](const Candidate& a, const Candidate& b) {
    if (a.size != b.size) return a.size < b.size;
    if (a.id != b.id) return a.id > b.id;
    return a.begin > b.begin;
  };
  std::vector<Candidate> found;
  for (size_t at = 0; at < text.size(); ++at)
    if (const auto longest = specials_.longest(text.substr(at)); longest.id >= 0)
      found.push_back({at, longest.bytes, longest.id});

  std::vector<Match> matches;
  if (!found.empty()) {
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)> queue(later, std::move(found));
    // Accepted matches are never shorter than later candidates, so looking at both ends of a candidate is
    // enough.
    std::vector<bool> taken(text.size());
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      const size_t end = c.begin + c.size;
      if (taken[c.begin]) continue;
      if (taken[end - 1]) {
        const auto shorter = specials_.longest(text.substr(c.begin, c.size - 1));
        if (shorter.id >= 0) queue.push({c.begin, shorter.bytes, shorter.id});
        continue;
      }
      size_t before = c.begin, after = end;
      if (vocabulary_.strips_right(c.id))
        while (after < text.size() && !taken[after] && is_space(text[after])) ++after;
      if (vocabulary_.strips_left(c.id))
        while (before > 0 && !taken[before - 1] && is_space(text[before - 1])) --before;
      std::fill(taken.begin() + long(before), taken.begin() + long(after), true);
      matches.push_back({before, c.begin, end, after, c.id});
    }
    std::sort(matches.begin(), matches.end(),
              [](const Match& a, const Match& b) { return a.begin < b.begin; });
  }

  std::vector<Fragment> fragments;
  size_t at = 0;
  for (const Match& m : matches) {
    if (m.before > at) fragments.push_back({-1, text.substr(at, m.before - at)});
    fragments.push_back({m.id, text.substr(m.begin, m.end - m.begin)});
    at = m.after;
  }
  if (at < text.size()) fragments.push_back({-1, text.substr(at)});
  return fragments;
}

}  // namespace gimbal
