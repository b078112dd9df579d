#include "template/natives.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/format.h"

namespace gimbal::tmpl {
namespace {

struct Layout {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '='
  char sign = '-';
  bool alternate = false, commas = false;
  int width = 0, precision = -1;
  char type = 0;
};
constexpr int kMaxWidth = 1000;

// Digits at `at`, which moves on.
int number(std::string_view s, size_t& at) {
  int n = 0;
  while (at < s.size() && s[at] >= '0' && s[at] <= '9') n = std::min(n * 10 + (s[at++] - '0'), kMaxWidth + 1);
  return n;
}

std::string with_commas(std::string digits) {
  size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (; end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

// The number without its sign.
std::string magnitude(const Value& v, const Layout& l) {
  const bool whole = v.is_integer();
  const char type = l.type ? l.type : whole ? 'd' : 0;
  if (type == 'd' || type == 'i' || type == 'u') {
    const uint64_t n = whole ? (v.as_integer() < 0 ? 0 - uint64_t(v.as_integer()) : uint64_t(v.as_integer()))
                             : uint64_t(std::min(std::fabs(v.number), 9e18));
    const std::string out = format("{}", n);
    return l.commas ? with_commas(out) : out;
  }
  if (type == 'x' || type == 'X' || type == 'o' || type == 'b') {
    uint64_t n = uint64_t(v.as_integer());
    if (v.as_integer() < 0) n = 0 - n;
    std::string out;
    const unsigned bits = type == 'o' ? 3 : type == 'b' ? 1 : 4;
    do
      out.insert(out.begin(),
                 (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[n & ((1u << bits) - 1)]);
    while (n >>= bits);
    return (l.alternate ? std::string("0") + type : "") + out;
  }
  const double d = std::fabs(v.as_double() * (type == '%' ? 100 : 1));
  if (!type && l.precision < 0) return float_text(d);
  const char text[] = {'%', '.', '*', type == '%' ? 'f' : type ? type : 'g', 0};
  char out[kMaxWidth + 400];
  std::snprintf(out, sizeof out, text, l.precision < 0 ? 6 : l.precision, d);
  return (l.commas ? with_commas(out) : std::string(out)) + (type == '%' ? "%" : "");
}

Text laid_out(Text body, const std::string& sign, const Layout& l, char align) {
  const int have = int(count_codes(body.bytes) + sign.size());
  const int missing = std::max(0, l.width - have);
  const int before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const auto pad = [&](Text& to, int n) {
    for (int i = 0; i < n; i++) to.append(l.fill, false);
  };
  Text out;
  pad(out, before);
  out.append(sign, false);
  if (align == '=') pad(out, missing);
  out.append(body);
  if (align != '=') pad(out, missing - before);
  return out;
}

// Formats a number. False if the value is not a number, or has no integer part for 'd' and similar.
bool number_text(const Value& v, const Layout& l, char align, Text& out) {
  if (!v.is_number()) return false;
  if (l.type == 'c' && v.is_integer() && v.as_integer() >= 0 && v.as_integer() < 0xd800) {
    std::string c;
    append_code(c, uint32_t(v.as_integer()));
    Text body;
    body.append(c, false);
    out.append(laid_out(body, "", l, l.align ? l.align : align));
    return true;
  }
  if (std::string_view("xXobc").find(l.type) != std::string_view::npos && l.type && !v.is_integer())
    return false;
  const bool negative = std::signbit(v.as_double());
  Text body;
  body.append(magnitude(v, l), false);
  const std::string sign = negative ? "-" : l.sign == '-' ? "" : std::string(1, l.sign);
  out.append(laid_out(body, sign, l, l.align ? l.align : align));
  return true;
}

}  // namespace

Text format_percent(Interpreter& in, const Text& pattern, const Value& values) {
  Text out;
  const std::string_view s = pattern.bytes;
  const bool tuple = values.is(Kind::List) && values.list->kind == ListKind::Tuple;
  size_t used = 0;
  const auto next_value = [&]() -> Value {
    if (!tuple) return used++ ? in.fail("not enough arguments for format string") : values;
    if (used >= values.list->items.size()) return in.fail("not enough arguments for format string");
    return values.list->items[used++];
  };
  for (size_t at = 0; at < s.size() && !in.failed();) {
    const size_t sign = std::min(s.find('%', at), s.size());
    out.append(pattern, at, sign);
    if ((at = sign) == s.size()) break;
    at++;
    Layout l;
    Value v;
    if (at < s.size() && s[at] == '(') {
      const size_t end = s.find(')', at);
      if (end == s.npos) return in.fail("incomplete format key"), out;
      if (!values.is(Kind::Dict)) return in.fail("format requires a mapping"), out;
      const Value* found = values.dict->find(s.substr(at + 1, end - at - 1));
      if (!found) return in.fail(format("there is no key '{}'", s.substr(at + 1, end - at - 1))), out;
      v = *found;
      used = 1;
      at = end + 1;
    }
    for (; at < s.size() && std::string_view("#0- +").find(s[at]) != s.npos; at++) {
      if (s[at] == '#') l.alternate = true;
      else if (s[at] == '-') l.align = '<';
      else if (s[at] == '0') l.fill = l.align == '<' ? " " : "0";
      else if (s[at] == '+' || l.sign == '-') l.sign = s[at];
    }
    if (l.align == '<') l.fill = " ";
    l.width = number(s, at);
    if (at < s.size() && s[at] == '.') l.precision = number(s, ++at);
    if (at == s.size()) return in.fail("incomplete format"), out;
    if (l.width > kMaxWidth || l.precision > kMaxWidth) return in.fail("a format that is too wide"), out;
    l.type = s[at++];
    if (l.type == '%') {
      out.append("%", false);
      continue;
    }
    if (v.absent()) v = next_value();
    if (in.failed()) break;
    if (l.type == 's' || l.type == 'r') {
      Text body = l.type == 's' ? to_text(v) : to_text(v).with(repr(v));
      if (l.precision >= 0) {
        Text cut;
        cut.append(body, 0, byte_of(body.bytes, size_t(l.precision)));
        body = std::move(cut);
      }
      l.fill = " ";
      out.append(laid_out(std::move(body), "", l, l.align ? l.align : '>'));
    } else if (std::string_view("diuxXocfFeEgG").find(l.type) == s.npos) {
      in.fail(format("unsupported format character '{}'", l.type));
    } else if (!number_text(v, l, l.fill == "0" ? '=' : '>', out)) {
      in.fail(format("%{} format: a number is required, not {}", l.type, type_name(v)));
    }
  }
  if (!in.failed() && (tuple ? used < values.list->items.size() : !used && !values.is(Kind::Dict)))
    in.fail("not all arguments converted during string formatting");
  return out;
}

namespace {

// "[[fill]align][sign][#][0][width][,][.precision][type]"
bool read_layout(std::string_view s, Layout& l) {
  size_t at = 0;
  const auto aligns = [&](size_t i) { return i < s.size() && std::string_view("<>^=").find(s[i]) != s.npos; };
  if (!s.empty()) {
    const size_t next = next_code(s, 0);
    if (aligns(next)) l.fill = s.substr(0, next), l.align = s[next], at = next + 1;
    else if (aligns(0)) l.align = s[0], at = 1;
  }
  if (at < s.size() && (s[at] == '+' || s[at] == '-' || s[at] == ' ')) l.sign = s[at++];
  if (at < s.size() && s[at] == '#') l.alternate = true, at++;
  if (at < s.size() && s[at] == '0') {
    at++;
    if (!l.align) l.fill = "0", l.align = '=';
  }
  l.width = number(s, at);
  if (at < s.size() && s[at] == ',') l.commas = true, at++;
  if (at < s.size() && s[at] == '.') l.precision = number(s, ++at);
  if (at < s.size()) l.type = s[at++];
  return at == s.size() && l.width <= kMaxWidth && l.precision <= kMaxWidth;
}

}  // namespace

Text format_braces(Interpreter& in, const Text& pattern, const Arguments& values) {
  Text out;
  const std::string_view s = pattern.bytes;
  size_t used = 0;
  for (size_t at = 0; at < s.size() && !in.failed();) {
    const size_t brace = std::min(s.find_first_of("{}", at), s.size());
    out.append(pattern, at, brace);
    if ((at = brace) == s.size()) break;
    if (at + 1 < s.size() && s[at + 1] == s[at]) {
      out.append(pattern, at, at + 1);
      at += 2;
      continue;
    }
    const size_t end = s[at] == '{' ? s.find('}', at) : s.npos;
    if (end == s.npos) return in.fail("single '{' or '}' in a format string"), out;
    std::string_view field = s.substr(at + 1, end - at - 1), layout;
    at = end + 1;
    if (field.find('{') != field.npos) return in.fail("a format in a format is not supported"), out;
    if (const size_t colon = field.find(':'); colon != field.npos)
      layout = field.substr(colon + 1), field = field.substr(0, colon);
    char conversion = 's';
    if (const size_t mark = field.find('!'); mark != field.npos) {
      conversion = mark + 1 < field.size() ? field[mark + 1] : 0;
      field = field.substr(0, mark);
    }
    const std::string_view name = field.substr(0, field.find_first_of(".["));
    std::string_view rest = field.substr(name.size());
    Value v;
    size_t index = used;
    if (name.empty()) used++;
    else if (std::from_chars(name.data(), name.data() + name.size(), index).ec != std::errc())
      index = SIZE_MAX;
    if (index != SIZE_MAX) {
      if (index >= values.positional.size()) return in.fail("replacement index out of range"), out;
      v = values.positional[index];
    } else {
      for (const auto& [n, value] : values.named)
        if (n == name) v = value;
      if (v.absent()) return in.fail(format("there is no argument '{}'", name)), out;
    }
    while (!rest.empty() && !in.failed()) {
      const bool dot = rest[0] == '.';
      const size_t stop = std::min(dot ? rest.find_first_of(".[", 1) : rest.find(']'), rest.size());
      const std::string_view part = rest.substr(1, stop - 1);
      int64_t i = 0;
      const bool digits = std::from_chars(part.data(), part.data() + part.size(), i).ec == std::errc();
      v = dot ? in.attribute(v, part) : in.item(v, digits ? Value::of(i) : in.heap.str(part));
      rest.remove_prefix(std::min(stop + !dot, rest.size()));
    }
    Layout l;
    if (!read_layout(layout, l)) return in.fail("invalid format specifier"), out;
    if (conversion != 'r' && v.is_number() && !v.is(Kind::Bool) && l.type != 's') {
      number_text(v, l, '>', out);
      continue;
    }
    if (l.type && l.type != 's')
      return in.fail(format("unknown format code '{}' for '{}'", l.type, type_name(v))), out;
    Text body = conversion == 'r' ? to_text(v).with(repr(v)) : to_text(v);
    if (l.precision >= 0) {
      Text cut;
      cut.append(body, 0, byte_of(body.bytes, size_t(l.precision)));
      body = std::move(cut);
    }
    out.append(laid_out(std::move(body), "", l, l.align ? l.align : '<'));
  }
  return out;
}

}  // namespace gimbal::tmpl
