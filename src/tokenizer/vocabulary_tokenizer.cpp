// The common frame of encoding and decoding.
#include "tokenizer/vocabulary_tokenizer.h"

#include <algorithm>
#include <queue>

#include "base/text.h"

namespace gimbal {
namespace {

// ---- Matching of special tokens: the longest candidate at each place is found in a sorted list, and a queue
// settles which of the overlapping candidates hold.

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

struct Match {
  size_t begin, end;
  size_t resume;  // where plain text goes on: after the whitespace that was swallowed
  Token id;
};

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, Kinds kinds) {
  for (Token id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool user = type == TokenType::UserDefined;
    const bool hidden = vocabulary.is_control(id) || type == TokenType::Unknown;
    if (kinds == Kinds::All ? !(user || hidden) : !user || hidden) continue;
    if (vocabulary.find(vocabulary.text(id)) != id) continue;  // empty, or a later one of equal texts
    specials_.push_back({vocabulary.text(id), id, vocabulary.strips_right(id), -1});
  }
  std::sort(specials_.begin(), specials_.end(),
            [](const Special& a, const Special& b) { return a.text < b.text; });
  // In sorted order the texts that begin a text come before it, and each begins the next: a stack finds them.
  std::vector<int32_t> open;
  for (size_t i = 0; i < specials_.size(); ++i) {
    while (!open.empty() && !specials_[i].text.starts_with(specials_[size_t(open.back())].text))
      open.pop_back();
    specials_[i].shorter = open.empty() ? -1 : open.back();
    open.push_back(int32_t(i));
    ++first_[size_t(uint8_t(specials_[i].text[0])) + 1];
  }
  for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
}

int SpecialSplitter::longest_at(std::string_view text, size_t at) const {
  const uint8_t byte = uint8_t(text[at]);
  size_t low = first_[byte], high = first_[size_t(byte) + 1];
  int longest = -1;
  for (size_t depth = 1; low < high; ++depth) {
    // All of [low, high) agree with the text in `depth` bytes; one that is no longer than that comes first.
    if (specials_[low].text.size() == depth) longest = int(low++);
    if (at + depth == text.size()) break;
    const uint8_t next = uint8_t(text[at + depth]);
    const auto byte_at = [&](const Special& s) { return uint8_t(s.text[depth]); };
    const auto begin = specials_.begin();
    low = size_t(std::partition_point(begin + long(low), begin + long(high),
                                      [&](const Special& s) { return byte_at(s) < next; }) -
                 begin);
    high = size_t(std::partition_point(begin + long(low), begin + long(high),
                                       [&](const Special& s) { return byte_at(s) == next; }) -
                  begin);
  }
  return longest;
}

std::vector<Fragment> SpecialSplitter::split(std::string_view text) const {
  struct Candidate {
    size_t begin;
    int special;
  };
  const auto later = [&](const Candidate& a, const Candidate& b) {
    const Special &x = specials_[size_t(a.special)], &y = specials_[size_t(b.special)];
    if (x.text.size() != y.text.size()) return x.text.size() < y.text.size();
    if (x.id != y.id) return x.id > y.id;
    return a.begin > b.begin;
  };
  std::vector<Candidate> found;
  for (size_t at = 0; at < text.size(); ++at)
    if (const int i = longest_at(text, at); i >= 0) found.push_back({at, i});

  std::vector<Match> matches;
  if (!found.empty()) {
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)> queue(later, std::move(found));
    // Accepted matches are never shorter than later candidates, so looking at both ends of a candidate is
    // enough.
    std::vector<bool> taken(text.size());
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      const Special& s = specials_[size_t(c.special)];
      const size_t end = c.begin + s.text.size();
      if (taken[c.begin]) continue;
      if (taken[end - 1]) {
        if (s.shorter >= 0) queue.push({c.begin, s.shorter});
        continue;
      }
      size_t resume = end;
      if (s.strips_right)
        while (resume < text.size() && !taken[resume] && is_space(text[resume])) ++resume;
      std::fill(taken.begin() + long(c.begin), taken.begin() + long(resume), true);
      matches.push_back({c.begin, end, resume, s.id});
    }
    std::sort(matches.begin(), matches.end(),
              [](const Match& a, const Match& b) { return a.begin < b.begin; });
  }

  std::vector<Fragment> fragments;
  size_t at = 0;
  for (const Match& m : matches) {
    if (m.begin > at) fragments.push_back({-1, text.substr(at, m.begin - at)});
    fragments.push_back({m.id, text.substr(m.begin, m.end - m.begin)});
    at = m.resume;
  }
  if (at < text.size()) fragments.push_back({-1, text.substr(at)});
  return fragments;
}

namespace {

// The algorithms count bytes in 32 bits; longer texts are cut, at a character's end where there is one.
constexpr size_t kMaxBytes = size_t(1) << 30;

size_t cut_of(std::string_view text) {
  if (text.size() <= kMaxBytes) return text.size();
  size_t cut = kMaxBytes;
  for (int back = 0; back < 3 && (uint8_t(text[cut]) & 0xc0) == 0x80; ++back) --cut;
  return cut;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, bool adds_bos)
    : vocabulary_(std::move(vocabulary)),
      all_(vocabulary_, SpecialSplitter::Kinds::All),
      user_defined_(vocabulary_, SpecialSplitter::Kinds::UserDefined),
      adds_bos_(vocabulary_.add_bos.value_or(adds_bos) && vocabulary_.bos >= 0),
      adds_eos_(vocabulary_.add_eos.value_or(false) && vocabulary_.eos >= 0) {}

std::vector<Token> VocabularyTokenizer::encode(std::string_view text, TokenizeOptions options) const {
  std::vector<Token> out;
  if (options.add_bos && adds_bos_) out.push_back(vocabulary_.bos);
  bool starts = true;
  for (const Fragment& fragment : (options.parse_special ? all_ : user_defined_).split(text)) {
    if (fragment.token >= 0) {
      out.push_back(fragment.token);
      starts = true;
      continue;
    }
    for (std::string_view rest = fragment.text; !rest.empty();) {
      const size_t cut = cut_of(rest);
      encode_plain(rest.substr(0, cut), starts, out);
      rest.remove_prefix(cut);
      starts = false;
    }
  }
  if (options.add_bos && adds_eos_) out.push_back(vocabulary_.eos);
  return out;
}

std::string VocabularyTokenizer::piece(Token id, bool special) const {
  if (!vocabulary_.has(id)) return {};
  const TokenType type = vocabulary_.type(id);
  if (vocabulary_.is_control(id) || type == TokenType::Unknown)
    return special ? std::string(vocabulary_.text(id)) : std::string();
  switch (type) {
    case TokenType::UserDefined: return std::string(vocabulary_.text(id));
    case TokenType::Normal:
    case TokenType::Byte: return plain_piece(id);
    default: return {};  // unused tokens stand for nothing
  }
}

// The first token loses the space that encode() put there. After a BOS the space stays, as it does in
// llama.cpp: the sequence is then seen as tokens, not as a text.
std::string VocabularyTokenizer::decode(std::span<const Token> ids, bool special) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    text += piece(ids[i], special);
    if (i == 0 && adds_space() && text.starts_with(' ')) text.erase(0, 1);
  }
  return text;
}

int byte_of_name(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace gimbal
