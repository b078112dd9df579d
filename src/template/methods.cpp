// The methods of strings, lists, dicts and loops. Those that would change a list or a dict are not there, as
// in jinja2's immutable sandbox.
#include <algorithm>

#include "template/natives.h"
#include "template/text.h"

namespace gimbal::tmpl {
namespace {

const Text& self(Call& c) { return *c.self.text; }
Value part(Call& c, size_t begin, size_t end) {
  Text t;
  t.append(self(c), begin, end);
  return text_of(c, std::move(t));
}

Value by_filter(Call& c, const char* name) {
  Arguments none;
  return c.in.apply_filter(name, c.self, none);
}
Value s_upper(Call& c) { return by_filter(c, "upper"); }
Value s_lower(Call& c) { return by_filter(c, "lower"); }
Value s_capitalize(Call& c) { return by_filter(c, "capitalize"); }

Value strip(Call& c, bool left, bool right) {
  const bool any = !given(c.a[0]) || c.a[0].is(Kind::None);
  const std::string_view set = any ? std::string_view() : str(c, c.a[0]);
  const Span kept = stripped(c.self.str(), any ? nullptr : &set, left, right);
  return part(c, kept.begin, kept.end);
}
Value s_strip(Call& c) { return strip(c, true, true); }
Value s_lstrip(Call& c) { return strip(c, true, false); }
Value s_rstrip(Call& c) { return strip(c, false, true); }

// startswith and endswith: one text, or one of a tuple.
Value ends(Call& c, bool at_begin) {
  const std::string_view s = c.self.str();
  const auto fits = [&](const Value& v) {
    const std::string_view t = str(c, v);
    return at_begin ? s.starts_with(t) : s.ends_with(t);
  };
  if (!c.a[0].is(Kind::List)) {
    if (!given(c.a[0])) return c.in.fail("expected a string");
    return Value::of(fits(c.a[0]));
  }
  return Value::of(std::any_of(c.a[0].list->items.begin(), c.a[0].list->items.end(), fits));
}
Value s_startswith(Call& c) { return ends(c, true); }
Value s_endswith(Call& c) { return ends(c, false); }
Value s_removeprefix(Call& c) {
  const std::string_view t = str(c, c.a[0]);
  return part(c, c.self.str().starts_with(t) ? t.size() : 0, c.self.str().size());
}
Value s_removesuffix(Call& c) {
  const std::string_view t = str(c, c.a[0]);
  return part(c, 0, c.self.str().size() - (c.self.str().ends_with(t) ? t.size() : 0));
}

Value s_replace(Call& c) {
  const std::string_view s = c.self.str(), old = str(c, c.a[0]);
  str(c, c.a[1]);
  int64_t count = whole(c, c.a[2], -1);
  if (c.in.failed() || !given(c.a[1])) return c.in.fail("replace() needs what to replace, and by what");
  Text out;
  size_t at = 0;
  const size_t most = c.in.options().limits.output_bytes;
  for (; count != 0 && out.bytes.size() <= most && c.in.spend(1); count--) {
    const size_t found = find_text(s, old, at);
    if (found == s.npos) break;
    out.append(self(c), at, found);
    out.append(*c.a[1].text);
    at = found + old.size();
    if (!old.empty()) continue;
    if (at >= s.size()) break;
    const size_t next = next_code(s, at);
    out.append(self(c), at, next);
    if ((at = next) == s.size() && count != 1) {
      out.append(*c.a[1].text);
      break;
    }
  }
  if (out.bytes.size() > most) return c.in.stop("a text that is too long");
  out.append(self(c), at, s.size());
  return text_of(c, std::move(out));
}

// At white space, or at a text; from the left or the right, at most so often.
Value split(Call& c, bool from_left) {
  const std::string_view s = c.self.str();
  int64_t most = whole(c, c.a[1], -1);
  std::vector<Value> out;
  if (!given(c.a[0]) || c.a[0].is(Kind::None)) {
    size_t begin = 0, end = s.size();
    for (; c.in.spend(1); most--) {
      const Span rest = stripped(s.substr(begin, end - begin), nullptr, from_left, !from_left);
      const size_t first = begin + rest.begin, last = begin + rest.end;
      if (first == last) break;
      begin = end = from_left ? first : last;
      if (most == 0) {
        out.push_back(part(c, first, last));
        break;
      }
      if (from_left) {
        while (begin < last && !is_space(code_at(s, begin))) begin = next_code(s, begin);
        end = s.size();
        out.push_back(part(c, first, begin));
      } else {
        begin = 0;
        for (end = last; end > first;) {
          size_t at = end - 1;
          while (at > first && (uint8_t(s[at]) & 0xc0) == 0x80) --at;
          if (is_space(code_at(s, at))) break;
          end = at;
        }
        out.push_back(part(c, end, last));
      }
    }
  } else {
    const std::string_view by = str(c, c.a[0]);
    if (c.in.failed()) return Value(Kind::Undefined);
    if (by.empty()) return c.in.fail("empty separator");
    size_t begin = 0, end = s.size();
    for (; most != 0 && c.in.spend(1); most--) {
      const size_t found = from_left ? find_text(s, by, begin) : rfind_text(s.substr(0, end), by);
      if (found == s.npos || found < begin) break;
      out.push_back(from_left ? part(c, begin, found) : part(c, found + by.size(), end));
      (from_left ? begin : end) = from_left ? found + by.size() : found;
    }
    out.push_back(part(c, begin, end));
  }
  if (!from_left) std::reverse(out.begin(), out.end());
  return c.in.heap.list(std::move(out));
}
Value s_split(Call& c) { return split(c, true); }
Value s_rsplit(Call& c) { return split(c, false); }

Value partition(Call& c, bool from_left) {
  const std::string_view s = c.self.str(), by = str(c, c.a[0]);
  if (by.empty()) return c.in.fail("empty separator");
  const size_t at = from_left ? find_text(s, by) : rfind_text(s, by);
  const Value empty = c.in.heap.str("");
  if (at != s.npos)
    return c.in.heap.list({part(c, 0, at), part(c, at, at + by.size()), part(c, at + by.size(), s.size())},
                          ListKind::Tuple);
  return from_left ? c.in.heap.list({c.self, empty, empty}, ListKind::Tuple)
                   : c.in.heap.list({empty, empty, c.self}, ListKind::Tuple);
}
Value s_partition(Call& c) { return partition(c, true); }
Value s_rpartition(Call& c) { return partition(c, false); }

Value s_splitlines(Call& c) {
  const std::string_view s = c.self.str();
  std::vector<Value> out;
  for (size_t at = 0; at < s.size() && c.in.spend(1);) {
    size_t end = at;
    const auto breaks = [&](size_t i) {
      const uint32_t code = code_at(s, i);
      return (code >= 10 && code <= 13) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
             code == 0x2029;
    };
    while (end < s.size() && !breaks(end)) end = next_code(s, end);
    size_t next = end == s.size() ? end : s.substr(end).starts_with("\r\n") ? end + 2 : next_code(s, end);
    out.push_back(part(c, at, flag(c.a[0], false) ? next : end));
    at = next;
  }
  return c.in.heap.list(std::move(out));
}

Value s_join(Call& c) {
  Text out;
  bool first = true;
  if (!given(c.a[0])) return c.in.fail("join() needs what to join");
  for (const Value& v : c.in.items(c.a[0])) {
    if (!v.is(Kind::Str))
      return c.in.fail(format("sequence item: expected str instance, {} found", type_name(v)));
    if (!std::exchange(first, false)) out.append(self(c));
    out.append(*v.text);
    if (out.bytes.size() > c.in.options().limits.output_bytes) return c.in.stop("a text that is too long");
  }
  return text_of(c, std::move(out));
}

// Where a text is, in characters; -1 when it is not there.
int64_t place(Call& c, bool from_left) {
  const std::string_view s = c.self.str(), what = str(c, c.a[0]);
  const auto size = int64_t(count_codes(s));
  const auto bound = [&](const Value& v, int64_t otherwise) {
    const int64_t i = given(v) && v.is(Kind::None) ? otherwise : whole(c, v, otherwise);
    return std::max<int64_t>(i < 0 ? i + size : i, 0);
  };
  // Nothing is behind the end, not even an empty text.
  const int64_t from = bound(c.a[1], 0), to = std::min(bound(c.a[2], size), size);
  if (from > to) return -1;
  const size_t begin = byte_of(s, size_t(from)), end = byte_of(s, size_t(to));
  const std::string_view within = s.substr(begin, end - begin);
  const size_t found = from_left ? find_text(within, what) : rfind_text(within, what);
  return found == s.npos ? -1 : from + int64_t(count_codes(within.substr(0, found)));
}
Value s_find(Call& c) { return Value::of(place(c, true)); }
Value s_rfind(Call& c) { return Value::of(place(c, false)); }
Value s_index(Call& c) {
  const int64_t at = place(c, true);
  return at < 0 ? c.in.fail("substring not found") : Value::of(at);
}
Value s_count(Call& c) {
  const std::string_view s = c.self.str(), what = str(c, c.a[0]);
  if (what.empty()) return Value::of(int64_t(count_codes(s) + 1));
  int64_t n = 0;
  for (size_t at = 0; c.in.spend(1) && (at = find_text(s, what, at)) != s.npos; at += what.size()) n++;
  return Value::of(n);
}

Value padded(Call& c, char kind) {
  const auto have = int64_t(count_codes(c.self.str()));
  const int64_t width = whole(c, c.a[0], 0);
  if (width > 100000) return c.in.fail("a width that is too large");
  const auto missing = size_t(std::max<int64_t>(0, width - have));
  const std::string_view fill = kind == 'z' ? "0" : str(c, c.a[1], " ");
  const bool sign =
      kind == 'z' && !c.self.str().empty() && (c.self.str()[0] == '-' || c.self.str()[0] == '+');
  const size_t before = kind == 'l' ? 0 : kind == 'c' ? missing / 2 + (missing & size_t(width) & 1) : missing;
  Text out;
  if (count_codes(fill) != 1) return c.in.fail("the fill character must be exactly one character long");
  if (sign) out.append(self(c), 0, 1);
  for (size_t i = 0; i < before; i++) out.append(fill, false);
  out.append(self(c), sign, c.self.str().size());
  for (size_t i = before; i < missing; i++) out.append(fill, false);
  return text_of(c, std::move(out));
}
Value s_ljust(Call& c) { return padded(c, 'l'); }
Value s_rjust(Call& c) { return padded(c, 'r'); }
Value s_center(Call& c) { return padded(c, 'c'); }
Value s_zfill(Call& c) { return padded(c, 'z'); }

// Unlike the filter: after every character that is no letter.
Value s_title(Call& c) {
  std::string out;
  const std::string_view s = c.self.str();
  bool inside = false;
  for (size_t at = 0; at < s.size(); at = next_code(s, at)) {
    const std::string_view one = s.substr(at, next_code(s, at) - at);
    out += inside ? lower(one) : upper(one);
    inside = upper(one) != lower(one);
  }
  return text_of(c, self(c).with(out));
}
Value s_swapcase(Call& c) {
  std::string out;
  const std::string_view s = c.self.str();
  for (size_t at = 0; at < s.size(); at = next_code(s, at)) {
    const std::string_view one = s.substr(at, next_code(s, at) - at);
    const std::string up = upper(one);
    out += up == one ? lower(one) : up;
  }
  return text_of(c, self(c).with(out));
}

template <class Is>
Value all_are(Call& c, Is is) {
  const std::string_view s = c.self.str();
  for (size_t at = 0; at < s.size(); at = next_code(s, at))
    if (!is(code_at(s, at))) return Value::of(false);
  return Value::of(!s.empty());
}
Value s_isdigit(Call& c) { return all_are(c, is_digit); }
Value s_isalpha(Call& c) { return all_are(c, is_letter); }
Value s_isspace(Call& c) { return all_are(c, is_space); }
Value s_isalnum(Call& c) {
  return all_are(c, [](uint32_t code) { return is_letter(code) || is_digit(code); });
}
Value s_isascii(Call& c) {
  return Value::of(
      std::all_of(c.self.str().begin(), c.self.str().end(), [](char b) { return uint8_t(b) < 0x80; }));
}
Value s_islower(Call& c) {
  Arguments none;
  return Value::of(c.in.apply_test("lower", c.self, none));
}
Value s_isupper(Call& c) {
  Arguments none;
  return Value::of(c.in.apply_test("upper", c.self, none));
}
// Markup escapes its arguments.
Value formatted(Call& c, Arguments given) {
  const auto escape = [&](Value& v) {
    if (v.is(Kind::Str)) v = text_of(c, c.in.escaped(to_text(v)));
  };
  if (self(c).markup) {
    for (Value& v : given.positional) escape(v);
    for (auto& [name, v] : given.named) escape(v);
  }
  Text out = format_braces(c.in, self(c), given);
  out.markup = self(c).markup;
  return text_of(c, std::move(out));
}
Value s_format(Call& c) { return formatted(c, c.given); }
Value s_format_map(Call& c) {
  if (!c.a[0].is(Kind::Dict)) return c.in.fail("format_map() needs a dict");
  Arguments given;
  for (const auto& [key, value] : c.a[0].dict->items)
    if (key.is(Kind::Str)) given.named.emplace_back(key.str(), value);
  return formatted(c, std::move(given));
}

constexpr Native kStrings[] = {
    {"strip", "chars", s_strip},
    {"lstrip", "chars", s_lstrip},
    {"rstrip", "chars", s_rstrip},
    {"split", "sep maxsplit", s_split},
    {"rsplit", "sep maxsplit", s_rsplit},
    {"splitlines", "keepends", s_splitlines},
    {"partition", "sep", s_partition},
    {"rpartition", "sep", s_rpartition},
    {"startswith", "prefix", s_startswith},
    {"endswith", "suffix", s_endswith},
    {"removeprefix", "prefix", s_removeprefix},
    {"removesuffix", "suffix", s_removesuffix},
    {"replace", "old new count", s_replace},
    {"join", "iterable", s_join},
    {"upper", "", s_upper},
    {"lower", "", s_lower},
    {"casefold", "", s_lower},
    {"capitalize", "", s_capitalize},
    {"title", "", s_title},
    {"swapcase", "", s_swapcase},
    {"find", "sub start end", s_find},
    {"rfind", "sub start end", s_rfind},
    {"index", "sub start end", s_index},
    {"count", "sub", s_count},
    {"format", "*", s_format},
    {"format_map", "mapping", s_format_map},
    {"ljust", "width fillchar", s_ljust},
    {"rjust", "width fillchar", s_rjust},
    {"center", "width fillchar", s_center},
    {"zfill", "width", s_zfill},
    {"isdigit", "", s_isdigit},
    {"isdecimal", "", s_isdigit},
    {"isnumeric", "", s_isdigit},
    {"isalpha", "", s_isalpha},
    {"isalnum", "", s_isalnum},
    {"isspace", "", s_isspace},
    {"isascii", "", s_isascii},
    {"islower", "", s_islower},
    {"isupper", "", s_isupper},
};

// ---- dicts

Value view(Call& c, ListKind kind) {
  std::vector<Value> out;
  for (const auto& [key, value] : c.self.dict->items)
    out.push_back(kind == ListKind::Keys     ? key
                  : kind == ListKind::Values ? value
                                             : c.in.heap.list({key, value}, ListKind::Tuple));
  return c.in.heap.list(std::move(out), kind);
}
Value d_items(Call& c) { return view(c, ListKind::Items); }
Value d_keys(Call& c) { return view(c, ListKind::Keys); }
Value d_values(Call& c) { return view(c, ListKind::Values); }
Value d_copy(Call& c) { return c.self; }
Value d_get(Call& c) {
  if (!given(c.a[0])) return c.in.fail("get expected at least 1 argument, got 0");
  if (!hashable(c.a[0])) return c.in.fail(format("unhashable type: '{}'", type_name(c.a[0])));
  if (const Value* v = c.self.dict->find(c.a[0])) return *v;
  return given(c.a[1]) ? c.a[1] : Value(Kind::None);
}

constexpr Native kDicts[] = {
    {"get", "key default", d_get}, {"items", "", d_items}, {"keys", "", d_keys},
    {"values", "", d_values},      {"copy", "", d_copy},
};

// ---- lists and tuples

Value l_count(Call& c) {
  int64_t n = 0;
  for (const Value& v : c.self.list->items) n += equal(v, c.a[0]);
  return Value::of(n);
}
Value l_index(Call& c) {
  const auto& all = c.self.list->items;
  for (size_t i = 0; i < all.size(); i++)
    if (equal(all[i], c.a[0])) return Value::of(int64_t(i));
  return c.in.fail(format("{} is not in list", repr(c.a[0])));
}
Value l_copy(Call& c) { return c.in.heap.list(c.self.list->items); }

constexpr Native kLists[] = {{"count", "value", l_count}, {"index", "value", l_index}, {"copy", "", l_copy}};

// ---- loops and cyclers

Value o_cycle(Call& c) {
  const auto& all = c.given.positional;
  return all.empty() ? c.in.fail("no items for cycling given") : all[c.self.object->index % all.size()];
}
Value o_changed(Call& c) {
  const Value now = c.in.heap.list(c.given.positional, ListKind::Tuple);
  const Value last = std::exchange(c.self.object->last, now);
  return Value::of(last.absent() || !equal(last, now));
}
constexpr Native kLoops[] = {{"cycle", "*", o_cycle}, {"changed", "*", o_changed}};

Value o_next(Call& c) {
  Object& o = *c.self.object;
  const auto& all = o.self.list->items;
  const Value v = all[o.index];
  o.index = (o.index + 1) % all.size();
  return v;
}
Value o_reset(Call& c) { return c.self.object->index = 0, Value(Kind::None); }
constexpr Native kCyclers[] = {{"next", "", o_next}, {"reset", "", o_reset}};

}  // namespace

const Native* find_method(const Value& of, std::string_view name) {
  switch (of.kind) {
    case Kind::Str: return find(kStrings, name);
    case Kind::Dict: return find(kDicts, name);
    case Kind::List:
      return of.list->kind <= ListKind::Tuple && !(of.list->kind == ListKind::Tuple && name == "copy")
                 ? find(kLists, name)
                 : nullptr;
    case Kind::Object:
      return of.object->type == Object::Loop     ? find(kLoops, name)
             : of.object->type == Object::Cycler ? find(kCyclers, name)
                                                 : nullptr;
    default: return nullptr;
  }
}

}  // namespace gimbal::tmpl
