#include "grammar/grammar.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// A character within a literal or a class of GBNF.
void append_gbnf_char(std::string& out, uint32_t c) {
  if (c == '\n') out += "\\n";
  else if (c == '\\' || c == '"' || c == '[' || c == ']') out += '\\', out += char(c);
  else if (c >= ' ' && c < 0x7f && c != '-' && c != '^') out += char(c);
  else if (c <= 0xff) out += format("\\x{:02X}", c);
  else if (c <= 0xffff) out += format("\\u{:04X}", c);
  else out += format("\\U{:08X}", c);
}

class GbnfText {
 public:
  explicit GbnfText(const Grammar& grammar) : grammar_(grammar) {}

  std::string all() {
    for (size_t r = 0; r < grammar_.rules().size(); r++) {
      out_ += name(uint32_t(r)) + " ::= ";
      append(grammar_.rules()[r].expr, false);
      out_ += '\n';
    }
    return std::move(out_);
  }

 private:
  std::string name(uint32_t rule) const { return rule ? format("r{}", rule) : "root"; }

  void append_list(const Grammar::Expr& e, const char* between, bool inside) {
    const auto items = grammar_.items_of(e);
    if (items.empty()) {
      out_ += e.kind == Grammar::Expr::Choice ? "[]" : "\"\"";
      return;
    }
    if (inside) out_ += '(';
    for (size_t i = 0; i < items.size(); i++) {
      if (i) out_ += between;
      append(items[i], e.kind == Grammar::Expr::Sequence || items.size() > 1);
    }
    if (inside) out_ += ')';
  }

  void append(Grammar::Id id, bool inside) {
    const Grammar::Expr& e = grammar_[id];
    switch (e.kind) {
      case Grammar::Expr::Text:
        out_ += '"';
        for (std::string_view rest = grammar_.text_of(e); !rest.empty();)
          append_gbnf_char(out_, take_char(rest));
        out_ += '"';
        break;
      case Grammar::Expr::Token: out_ += grammar_.text_of(e); break;
      case Grammar::Expr::Chars:
        out_ += '[';
        for (const CharRange& r : grammar_.ranges_of(e)) {
          append_gbnf_char(out_, r.low);
          if (r.high > r.low) out_ += '-', append_gbnf_char(out_, r.high);
        }
        out_ += ']';
        break;
      case Grammar::Expr::Sequence: append_list(e, " ", inside); break;
      case Grammar::Expr::Choice: append_list(e, " | ", inside); break;
      case Grammar::Expr::Rule: out_ += name(e.begin); break;
      case Grammar::Expr::Repeat:
        out_ += '(';
        append(e.begin, false);
        out_ += e.max == kUnbounded ? format("){{{},}}", e.min) : format("){{{},{}}}", e.min, e.max);
        break;
    }
  }

  const Grammar& grammar_;
  std::string out_;
};

}  // namespace

std::vector<CharRange> sorted(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](CharRange a, CharRange b) { return a.low < b.low; });
  std::vector<CharRange> out;
  for (const CharRange& r : ranges) {
    if (!out.empty() && r.low <= out.back().high + 1) out.back().high = std::max(out.back().high, r.high);
    else out.push_back(r);
  }
  return out;
}

std::vector<CharRange> complement(std::span<const CharRange> ranges) {
  std::vector<CharRange> out;
  uint32_t next = 0;
  for (const CharRange& r : ranges) {
    if (r.low > next) out.push_back({next, r.low - 1});
    next = r.high + 1;
  }
  if (next <= kLastChar) out.push_back({next, kLastChar});
  return out;
}

std::vector<CharRange> intersection(std::span<const CharRange> a, std::span<const CharRange> b) {
  std::vector<CharRange> out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const CharRange both{std::max(a[i].low, b[j].low), std::min(a[i].high, b[j].high)};
    if (both.low <= both.high) out.push_back(both);
    if (a[i].high < b[j].high) i++;
    else j++;
  }
  return out;
}

bool Grammar::has_text(Id expr, const std::vector<bool>& rules, size_t& work) const {
  const Expr& e = exprs_[expr];
  work++;
  auto has = [&](Id id) { return has_text(id, rules, work); };
  switch (e.kind) {
    case Expr::Text:
    case Expr::Token: return true;
    case Expr::Chars: return e.begin < e.end;
    case Expr::Sequence: return std::all_of(items_of(e).begin(), items_of(e).end(), has);
    case Expr::Choice: return std::any_of(items_of(e).begin(), items_of(e).end(), has);
    case Expr::Repeat: return e.min == 0 || has(e.begin);
    case Expr::Rule: return rules[e.begin];
  }
  return true;
}

// A rule has a text once the rules that it needs have one. Each rule is looked at again when another turns
// out to have a text, from the last to the first: rules mostly call later ones.
bool Grammar::has_text() const {
  constexpr size_t kMaxWork = 20'000'000;
  std::vector<bool> known(rules_.size());
  size_t work = 0;
  for (bool more = true; more && !rules_.empty() && !known[0];) {
    more = false;
    for (size_t r = rules_.size(); r-- > 0;)
      if (!known[r] && has_text(rules_[r].expr, known, work)) known[r] = more = true;
    if (work > kMaxWork) return true;
  }
  return !rules_.empty() && known[0];
}

std::string utf8_of(uint32_t c) {
  if (c > kLastChar || (c >= 0xd800 && c <= 0xdfff)) return {};
  std::string out;
  auto add = [&](uint32_t byte) { out += char(byte); };
  if (c < 0x80) {
    add(c);
    return out;
  }
  if (c < 0x800) add(0xc0 | c >> 6);
  else if (c < 0x10000) add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f));
  else add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f));
  add(0x80 | (c & 0x3f));
  return out;
}

uint32_t take_char(std::string_view& text) {
  const uint32_t bytes = utf8_step(text, 0).bytes;
  uint32_t c = uint8_t(text[0]);
  if (bytes > 1) c &= 0x7fu >> bytes;
  for (uint32_t i = 1; i < bytes; i++) c = c << 6 | (uint8_t(text[i]) & 0x3f);
  text.remove_prefix(bytes);
  return c;
}

std::string Grammar::to_gbnf() const { return GbnfText(*this).all(); }

Grammar::Id Grammar::add(Expr e) {
  exprs_.push_back(e);
  return Id(exprs_.size() - 1);
}

Grammar::Id Grammar::text(std::string_view utf8) {
  const auto begin = uint32_t(texts_.size());
  texts_ += utf8;
  return add({Expr::Text, begin, uint32_t(texts_.size()), 0, 0});
}

Grammar::Id Grammar::token(uint32_t id) { return token(format("<[{}]>", id)); }

Grammar::Id Grammar::token(std::string_view name) {
  const Id written = text(name);
  exprs_[written].kind = Expr::Token;
  return written;
}

Grammar::Id Grammar::chars(std::span<const CharRange> ranges) {
  const auto begin = uint32_t(ranges_.size());
  const auto clean = sorted({ranges.begin(), ranges.end()});
  ranges_.insert(ranges_.end(), clean.begin(), clean.end());
  return add({Expr::Chars, begin, uint32_t(ranges_.size()), 0, 0});
}

Grammar::Id Grammar::list(Expr::Kind kind, std::span<const Id> items) {
  if (items.size() == 1) return items[0];
  const auto begin = uint32_t(items_.size());
  items_.insert(items_.end(), items.begin(), items.end());
  return add({kind, begin, uint32_t(items_.size()), 0, 0});
}

Grammar::Id Grammar::repeat(Id expr, uint32_t min, uint32_t max) {
  if (max == 0) return nothing();
  if (min == 1 && max == 1) return expr;
  return add({Expr::Repeat, expr, 0, min, max});
}

Grammar::Id Grammar::add_rule(std::string name) {
  rules_.push_back({std::move(name), 0});
  return Id(rules_.size() - 1);
}

Grammar::Id Grammar::include(const Grammar& other) {
  const auto rules = uint32_t(rules_.size()), exprs = uint32_t(exprs_.size()),
             items = uint32_t(items_.size()), texts = uint32_t(texts_.size()),
             ranges = uint32_t(ranges_.size());
  for (Expr e : other.exprs_) {
    const bool list = e.kind == Expr::Sequence || e.kind == Expr::Choice;
    const bool single = e.kind == Expr::Rule || e.kind == Expr::Repeat;
    const bool text = e.kind == Expr::Text || e.kind == Expr::Token;
    const uint32_t moved = list                     ? items
                           : text                   ? texts
                           : e.kind == Expr::Chars  ? ranges
                           : e.kind == Expr::Repeat ? exprs
                                                    : rules;
    e.begin += moved;
    if (!single) e.end += moved;
    exprs_.push_back(e);
  }
  for (Id item : other.items_) items_.push_back(item + exprs);
  for (const RuleText& r : other.rules_) rules_.push_back({r.name, r.expr + exprs});
  texts_ += other.texts_;
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  return rule(rules);
}

}  // namespace gimbal
