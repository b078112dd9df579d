// Filters over one value, most of them over its text.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "template/natives.h"

namespace gimbal::tmpl {
namespace {

Value f_default(Call& c) {
  const bool missing = c.self.is(Kind::Undefined) || (flag(c.a[1], false) && !truth(c.self));
  return !missing ? c.self : given(c.a[0]) ? c.a[0] : c.in.heap.str("");
}

Value f_string(Call& c) { return c.self.is(Kind::Str) ? c.self : text_of(c, to_text(c.self)); }
Value f_upper(Call& c) {
  const Text t = to_text(c.self);
  return text_of(c, t.with(upper(t.bytes)));
}
Value f_lower(Call& c) {
  const Text t = to_text(c.self);
  return text_of(c, t.with(lower(t.bytes)));
}

Value f_capitalize(Call& c) {
  const Text t = to_text(c.self);
  const size_t first = t.bytes.empty() ? 0 : next_code(t.bytes, 0);
  return text_of(c, t.with(upper(t.bytes.substr(0, first)) + lower(t.bytes.substr(first))));
}

// Each word after white space, a dash or an opening bracket.
Value f_title(Call& c) {
  const Text t = to_text(c.self);
  std::string out;
  bool begins = true;
  for (size_t at = 0; at < t.bytes.size();) {
    const size_t next = next_code(t.bytes, at);
    const std::string_view one = std::string_view(t.bytes).substr(at, next - at);
    out += begins ? upper(one) : lower(one);
    begins = is_space(code_at(t.bytes, at)) || std::string_view("-({[<").find(one) != std::string_view::npos;
    at = next;
  }
  return text_of(c, t.with(out));
}

Value f_trim(Call& c) {
  const Text t = to_text(c.self);
  std::string_view set;
  if (given(c.a[0]) && !c.a[0].is(Kind::None)) set = str(c, c.a[0]);
  const bool any = !given(c.a[0]) || c.a[0].is(Kind::None);
  const Span left = stripped(t.bytes, any ? nullptr : &set, true, true);
  Text out;
  out.append(t, left.begin, left.end);
  out.markup = t.markup;
  return text_of(c, std::move(out));
}

Value f_replace(Call& c) {
  Arguments args;
  if (!given(c.a[0]) || !given(c.a[1]))
    return c.in.fail("filter 'replace' needs what to replace, and by what");
  for (const Value* v : {&c.a[0], &c.a[1]}) args.positional.push_back(text_of(c, to_text(*v)));
  if (given(c.a[2]) && !c.a[2].is(Kind::None)) args.positional.push_back(c.a[2]);
  const Value subject = f_string(c);
  return c.in.native(*find_method(subject, "replace"), subject, args, "filter");
}

Value f_indent(Call& c) {
  const Text t = to_text(c.self);
  Text indention, out;
  if (given(c.a[0]) && c.a[0].is(Kind::Str)) indention = *c.a[0].text;
  else {
    const int64_t width = whole(c, c.a[0], 4);
    if (width > 1000) return c.in.fail("an indent that is too wide");
    indention.append(std::string(size_t(std::max<int64_t>(0, width)), ' '), false);
  }
  if (flag(c.a[1], false)) out.append(indention);
  const std::string_view s = t.bytes;
  for (size_t at = 0; at <= s.size();) {
    const size_t end = std::min(s.find_first_of("\n\r", at), s.size());
    if (at > 0 && (end > at || flag(c.a[2], false))) out.append(indention);
    out.append(t, at, end);
    if (end == s.size()) break;
    Text newline;
    newline.append(t, end, end + 1);
    out.append(newline.with("\n"));
    at = end + (s.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  return text_of(c, std::move(out));
}

Value f_center(Call& c) {
  const Text t = to_text(c.self);
  const int64_t width = whole(c, c.a[0], 80), have = int64_t(count_codes(t.bytes));
  if (width > 100000) return c.in.fail("a width that is too large");
  const auto missing = size_t(std::max<int64_t>(0, width - have));
  const size_t before = missing / 2 + (missing & size_t(width) & 1);
  Text out;
  out.append(std::string(before, ' '), false);
  out.append(t);
  out.append(std::string(missing - before, ' '), false);
  return text_of(c, std::move(out));
}

Value f_tojson(Call& c) {
  JsonStyle style;
  if (given(c.a[0]) && !c.a[0].is(Kind::None)) {
    style.indent = int(std::clamp<int64_t>(whole(c, c.a[0], 0), 0, 100));
    style.item = ",";
  }
  if (given(c.a[1]) && c.a[1].is(Kind::List) && c.a[1].list->items.size() == 2) {
    style.item = str(c, c.a[1].list->items[0]);
    style.key = str(c, c.a[1].list->items[1]);
  }
  style.sort_keys = flag(c.a[2], false);
  style.ascii = flag(c.a[3], false);
  std::string out, bad;
  if (c.self.is(Kind::Undefined)) return c.in.fail(why_undefined(c.self));
  if (!to_json(c.self, style, out, bad))
    return c.in.fail(format("a value of type {} cannot be written as JSON", bad));
  Text t;
  t.append(out, has_foreign(c.self));
  return text_of(c, std::move(t));
}

Value f_escape(Call& c) { return text_of(c, c.in.escaped(to_text(c.self))); }
Value f_forceescape(Call& c) {
  Text t = to_text(c.self);
  t.markup = false;
  return text_of(c, c.in.escaped(t));
}
Value f_safe(Call& c) {
  Text t = to_text(c.self);
  t.markup = true;
  return text_of(c, std::move(t));
}

// Without tags and comments, and with single spaces.
Value f_striptags(Call& c) {
  const Text t = to_text(c.self);
  std::string out;
  const std::string& s = t.bytes;
  // Where the last tag and the last comment end: behind that, nothing is searched for again.
  const size_t last_tag = s.rfind('>'), last_comment = s.rfind("-->");
  const auto ends = [&](const char* sign, size_t at, size_t last) {
    return last == s.npos || at > last ? s.npos : s.find(sign, at);
  };
  for (size_t at = 0; at < s.size();) {
    const bool comment = s.compare(at, 4, "<!--") == 0;
    const size_t end = comment        ? ends("-->", at, last_comment)
                       : s[at] == '<' ? ends(">", at, last_tag)
                                      : s.npos;
    if (end != s.npos) at = end + (comment ? 3 : 1);
    else out += s[at++];
  }
  std::string joined;
  for (size_t at = 0; at < out.size(); at = next_code(out, at)) {
    const bool space = is_space(code_at(out, at));
    if (!space) joined += out.substr(at, next_code(out, at) - at);
    else if (!joined.empty() && joined.back() != ' ') joined += ' ';
  }
  if (!joined.empty() && joined.back() == ' ') joined.pop_back();
  return text_of(c, t.with(joined));
}

Value f_urlencode(Call& c) {
  const auto quote = [](std::string_view s, bool query) {
    std::string out;
    for (char b : s) {
      const bool plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
                         std::string_view("_.-~").find(b) != std::string_view::npos || (b == '/' && !query);
      if (plain) out += b;
      else if (b == ' ' && query) out += '+';
      else out += format("%{:02X}", uint8_t(b));
    }
    return out;
  };
  if (!c.self.is(Kind::Dict) && !c.self.is(Kind::List)) {
    const Text t = to_text(c.self);
    return text_of(c, t.with(quote(t.bytes, false)));
  }
  Text out;
  std::vector<std::pair<Value, Value>> pairs;
  if (c.self.is(Kind::Dict)) pairs = c.self.dict->items;
  else
    for (const Value& pair : c.in.items(c.self)) {
      const auto two = c.in.items(pair);
      if (two.size() != 2) return c.in.fail("filter 'urlencode' needs pairs");
      pairs.emplace_back(two[0], two[1]);
    }
  for (const auto& [key, value] : pairs) {
    if (!out.bytes.empty()) out.append("&", false);
    const Text k = to_text(key), v = to_text(value);
    out.append(k.with(quote(k.bytes, true)));
    out.append("=", false);
    out.append(v.with(quote(v.bytes, true)));
  }
  return text_of(c, std::move(out));
}

Value f_truncate(Call& c) {
  const Text t = to_text(c.self);
  const int64_t length = whole(c, c.a[0], 255),
                leeway = given(c.a[3]) && !c.a[3].is(Kind::None) ? whole(c, c.a[3], 5) : 5;
  const std::string_view end = str(c, c.a[2], "...");
  if (int64_t(count_codes(t.bytes)) <= length + leeway) return text_of(c, t);
  const int64_t kept = length - int64_t(count_codes(end));
  if (kept < 0) return c.in.fail(format("expected length >= {}, got {}", count_codes(end), length));
  size_t stop = byte_of(t.bytes, size_t(kept));
  if (!flag(c.a[1], false))
    if (const size_t space = t.bytes.substr(0, stop).rfind(' '); space != std::string::npos) stop = space;
  Text out;
  out.append(t, 0, stop);
  out.append(end, false);
  return text_of(c, std::move(out));
}

Value f_wordcount(Call& c) {
  const Text t = to_text(c.self);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < t.bytes.size(); at = next_code(t.bytes, at)) {
    const uint32_t code = code_at(t.bytes, at);
    const bool word = is_letter(code) || is_digit(code) || code == '_';
    words += word && !inside;
    inside = word;
  }
  return Value::of(words);
}

Value f_format(Call& c) {
  const Text pattern = to_text(c.self);
  if (!c.given.named.empty()) {
    Dict d;
    for (const auto& [name, v] : c.given.named) d.set(c.in.heap.str(name), v);
    return text_of(c, format_percent(c.in, pattern, c.in.heap.dict(std::move(d))));
  }
  return text_of(c, format_percent(c.in, pattern, c.in.heap.list(c.given.positional, ListKind::Tuple)));
}

// Without underscores between digits, as Python allows; empty if one is elsewhere.
std::string number_of(std::string_view s) {
  const Span left = stripped(s, nullptr, true, true);
  const std::string_view text = s.substr(left.begin, left.end - left.begin);
  const auto digit = [&](size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
  };
  std::string out;
  for (size_t i = 0; i < text.size(); i++)
    if (text[i] != '_') out += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1)) return "";
  return out;
}

bool read_float(std::string_view s, double& to) {
  const std::string text = number_of(s);
  char* end = nullptr;
  if (text.empty() || text.find_first_of("xXpP(") != text.npos) return false;
  to = std::strtod(text.c_str(), &end);
  return *end == 0;
}

Value f_int(Call& c) {
  const Value otherwise = given(c.a[0]) ? c.a[0] : Value::of(int64_t(0));
  const Value& v = c.self;
  if (v.is(Kind::Undefined)) return c.in.fail(why_undefined(v));
  if (v.is_integer()) return Value::of(v.as_integer());
  double d = 0;
  if (v.is(Kind::Str)) {
    std::string s = number_of(v.str());
    int64_t n = 0;
    int base = int(whole(c, c.a[1], 10));
    if (base < 2 || base > 36) base = 10;
    const bool negative = !s.empty() && s[0] == '-';
    if (!s.empty() && (s[0] == '+' || s[0] == '-')) s.erase(0, 1);
    if ((base == 16 || base == 8 || base == 2) && s.size() > 2 && s[0] == '0' &&
        (s[1] | 32) == "b oooo  x"[base == 2   ? 0
                                   : base == 8 ? 2
                                               : 8])
      s.erase(0, 2);
    const auto [end, bad] = std::from_chars(s.data(), s.data() + s.size(), n, base);
    if (bad == std::errc() && end == s.data() + s.size() && s[0] != '-') return Value::of(negative ? -n : n);
    if (!read_float(v.str(), d)) return otherwise;
  } else if (v.is(Kind::Float)) {
    d = v.number;
  } else {
    return otherwise;
  }
  if (!std::isfinite(d)) return otherwise;
  if (std::fabs(d) >= 9.2e18) return c.in.fail("a whole number of more than 64 bits");
  return Value::of(int64_t(d));
}

Value f_float(Call& c) {
  double d = 0;
  if (c.self.is(Kind::Undefined)) return c.in.fail(why_undefined(c.self));
  if (c.self.is_number()) return Value::of(c.self.as_double());
  if (c.self.is(Kind::Str) && read_float(c.self.str(), d)) return Value::of(d);
  return given(c.a[0]) ? c.a[0] : Value::of(0.0);
}

Value f_round(Call& c) {
  if (!c.self.is_number())
    return c.in.fail(format("filter 'round' needs a number, found {}", type_name(c.self)));
  const int precision = int(std::clamp<int64_t>(whole(c, c.a[0], 0), -300, 300));
  const std::string_view method = str(c, c.a[1], "common");
  const double d = c.self.as_double();
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, precision);
    return Value::of((method == "ceil" ? std::ceil(d * scale) : std::floor(d * scale)) / scale);
  }
  if (method != "common") return c.in.fail("filter 'round' knows 'common', 'ceil' and 'floor'");
  if (c.self.is_integer() && precision >= 0) return Value::of(c.self.as_integer());
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision), r = std::nearbyint(d / scale) * scale;
    return c.self.is_integer() ? Value::of(int64_t(r)) : Value::of(r);
  }
  char out[700];
  std::snprintf(out, sizeof out, "%.*f", precision, d);  // the exact decimal, rounded: as Python does
  return Value::of(std::strtod(out, nullptr));
}

Value f_abs(Call& c) {
  if (c.self.is(Kind::Float)) return Value::of(std::fabs(c.self.number));
  if (!c.self.is_integer()) return c.in.fail(format("bad operand type for abs(): '{}'", type_name(c.self)));
  return c.self.as_integer() < 0 ? c.in.binary("-", Value::of(int64_t(0)), c.self)
                                 : Value::of(c.self.as_integer());
}

Value f_filesizeformat(Call& c) {
  double bytes = 0;
  if (c.self.is_number()) bytes = c.self.as_double();
  else if (!c.self.is(Kind::Str) || !read_float(c.self.str(), bytes))
    return c.in.fail("filter 'filesizeformat' needs a number");
  const bool binary = flag(c.a[0], false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return c.in.heap.str("1 Byte");
  if (bytes < base) return c.in.heap.str(format("{} Bytes", int64_t(bytes)));
  double unit = base;
  size_t i = 0;
  for (; i < 7 && bytes >= unit * base; i++) unit *= base;
  char out[64];
  std::snprintf(out, sizeof out, "%.1f %c%sB", bytes / unit, (binary ? "KMGTPEZY" : "kMGTPEZY")[i],
                binary ? "i" : "");
  return c.in.heap.str(out);
}

constexpr Native kTextFilters[] = {
    {"default", "default_value boolean", f_default},
    {"d", "default_value boolean", f_default},
    {"string", "", f_string},
    {"upper", "", f_upper},
    {"lower", "", f_lower},
    {"capitalize", "", f_capitalize},
    {"title", "", f_title},
    {"trim", "chars", f_trim},
    {"replace", "old new count", f_replace},
    {"indent", "width first blank", f_indent},
    {"center", "width", f_center},
    {"tojson", "indent separators sort_keys ensure_ascii", f_tojson},
    {"escape", "", f_escape},
    {"e", "", f_escape},
    {"forceescape", "", f_forceescape},
    {"safe", "", f_safe},
    {"striptags", "", f_striptags},
    {"urlencode", "", f_urlencode},
    {"truncate", "length killwords end leeway", f_truncate},
    {"wordcount", "", f_wordcount},
    {"format", "*", f_format},
    {"int", "default base", f_int},
    {"float", "default", f_float},
    {"round", "precision method", f_round},
    {"abs", "", f_abs},
    {"filesizeformat", "binary", f_filesizeformat},
};

}  // namespace

std::span<const Native> text_filters() { return kTextFilters; }

const Native* find_filter(std::string_view name) {
  const Native* f = find(text_filters(), name);
  return f ? f : find(list_filters(), name);
}

}  // namespace gimbal::tmpl
