#include "grammar/token_tree.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace gimbal {
namespace {

using Entry = std::pair<std::string_view, Token>;

size_t common(std::string_view a, std::string_view b) {
  return size_t(
      std::mismatch(a.begin(), a.begin() + ptrdiff_t(std::min(a.size(), b.size())), b.begin()).first -
      a.begin());
}

// From sorted, distinct texts.
TokenTree::Nodes tree_of(const std::vector<Entry>& entries) {
  TokenTree::Nodes nodes;
  std::vector<uint32_t> open;  // path of the last text
  auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) nodes[open.back()].next = uint32_t(nodes.size());
  };
  std::string_view last;
  for (const auto& [text, id] : entries) {
    close(common(last, text));
    while (open.size() < text.size()) {
      open.push_back(uint32_t(nodes.size()));
      nodes.push_back({0, -1, uint16_t(open.size()), uint8_t(text[open.size() - 1])});
    }
    nodes.back().token = id;
    last = text;
  }
  close(0);
  return nodes;
}

bool is_plain_text(std::string_view text) {
  int state = 0, chars = 0;
  for (char c : text) {
    state = TokenTree::plain_next(state, uint8_t(c));
    if (state < 0) return false;
    chars += state == 0;
  }
  return state == 0 && chars <= TokenTree::kPlainChars;
}

constexpr size_t kMaxText = 65535;

}  // namespace

// 1 to 3: number of missing continuation bytes; 4 to 7: the first of them is restricted (E0, ED, F0, F4).
int TokenTree::plain_next(int state, uint8_t b) {
  auto within = [b](int low, int high, int then) { return b >= low && b <= high ? then : -1; };
  switch (state) {
    case 0:
      if (b < 0x80) return b < 0x20 || b == '"' || b == '\\' || b == 0x7f ? -1 : 0;
      if (b < 0xc2 || b > 0xf4) return -1;
      if (b < 0xe0) return 1;
      if (b < 0xf0) return b == 0xe0 ? 4 : b == 0xed ? 5 : 2;
      return b == 0xf0 ? 6 : b == 0xf4 ? 7 : 3;
    case 1: return within(0x80, 0xbf, 0);
    case 2: return within(0x80, 0xbf, 1);
    case 3: return within(0x80, 0xbf, 2);
    case 4: return within(0xa0, 0xbf, 1);
    case 5: return within(0x80, 0x9f, 1);
    case 6: return within(0x90, 0xbf, 2);
    default: return within(0x80, 0x8f, 2);
  }
}

std::shared_ptr<const TokenTree> TokenTree::create(const Tokenizer& tokenizer, int tokens) {
  auto tree = std::make_shared<TokenTree>();
  TokenTree& t = *tree;
  for (Token id = 0; id < tokenizer.size(); id++) {
    // BOS also ends a text: see generate().
    const bool ends = tokenizer.is_stop(id) || id == tokenizer.bos();
    if (ends) t.ends_.push_back(id);
    if (tokenizer.is_control(id)) t.controls_.emplace_back(tokenizer.piece(id, true), id);
    else if (!ends)
      if (const std::string text = tokenizer.piece(id); text.size() <= kMaxText) t.texts_ += text;
    t.text_ends_.push_back(uint32_t(t.texts_.size()));
  }
  std::vector<Entry> all;
  for (Token id = 0; id < tokenizer.size(); id++)
    if (const auto text = t.text(id); !text.empty()) all.emplace_back(text, id);
  std::sort(all.begin(), all.end());
  t.find_alphabet(all);

  t.words_ = size_t(std::max(tokens, tokenizer.size()) + 63) / 64;
  t.plain_masks_.assign((kPlainChars + 1 + kPlainKinds) * t.words_, 0);
  std::vector<Entry> plain, others;
  for (const Entry& e : all) {
    // If single bytes cannot be written, an incomplete character might never be completed.
    if (!t.alphabet_.empty() && !is_utf8(e.first)) continue;
    auto& part = is_plain_text(e.first) ? plain : others;
    if (&part == &plain) t.add_plain(e.first, e.second);
    if (!part.empty() && part.back().first == e.first) t.twins_.emplace_back(part.back().second, e.second);
    else part.push_back(e);
    t.longest_ = std::max(t.longest_, int(e.first.size()));
  }
  t.plain_ = tree_of(plain), t.others_ = tree_of(others);
  return tree;
}

void TokenTree::add_plain(std::string_view text, Token id) {
  const auto set = [&](size_t row) {
    plain_masks_[row * words_ + size_t(id) / 64] |= uint64_t(1) << id % 64;
  };
  size_t chars = 0;
  for (char c : text) {
    chars += (uint8_t(c) & 0xc0) != 0x80;
    set(kPlainChars + 1 + plain_kind(uint8_t(c)));
  }
  for (; chars <= kPlainChars; chars++) set(chars);
}

void TokenTree::find_alphabet(const std::vector<Entry>& entries) {
  bool bytes[256] = {};
  for (const auto& [text, id] : entries)
    if (text.size() == 1) bytes[uint8_t(text[0])] = true;
  // The bytes C0, C1 and F5 to FF occur in no character.
  bool all = true;
  for (int b = 0; b < 0xf5; b++) all &= bytes[b] || b == 0xc0 || b == 0xc1;
  if (all) return;
  std::vector<CharRange> found;
  for (uint32_t b = 0; b < 0x80; b++)
    if (bytes[b]) found.push_back({b, b});
  for (const auto& [text, id] : entries)
    if (utf8_step(text, 0).bytes == text.size() && is_utf8(text)) {
      std::string_view rest = text;
      const uint32_t c = take_char(rest);
      found.push_back({c, c});
    }
  alphabet_ = sorted(std::move(found));
  if (alphabet_.empty()) alphabet_.push_back({kLastChar, kLastChar});  // nothing can be written
}

bool TokenTree::is_end(Token id) const { return std::binary_search(ends_.begin(), ends_.end(), id); }

Token TokenTree::written(std::string_view token) const {
  if (token.starts_with("<[") && token.ends_with("]>")) {
    uint32_t id = 0;
    const char* const end = token.data() + token.size() - 2;
    const auto read = std::from_chars(token.data() + 2, end, id);
    return read.ec == std::errc() && read.ptr == end && id < text_ends_.size() ? Token(id) : -1;
  }
  for (const auto& [name, id] : controls_)
    if (name == token) return id;
  for (size_t id = 0; id < text_ends_.size(); id++)
    if (text(Token(id)) == token) return Token(id);
  return -1;
}

bool TokenTree::is_control(Token id) const {
  const auto at = std::lower_bound(controls_.begin(), controls_.end(), id,
                                   [](const auto& c, Token t) { return c.second < t; });
  return at != controls_.end() && at->second == id && !is_end(id);
}

std::string_view TokenTree::text(Token id) const {
  if (id < 0 || size_t(id) >= text_ends_.size()) return {};
  const uint32_t begin = id ? text_ends_[size_t(id) - 1] : 0;
  return std::string_view(texts_).substr(begin, text_ends_[size_t(id)] - begin);
}

}  // namespace gimbal
