// The tables of built-ins, and helpers of their functions.
#pragma once
#include <span>

#include "base/format.h"
#include "template/interpreter.h"

namespace gimbal::tmpl {

std::span<const Native> text_filters();
std::span<const Native> list_filters();

inline const Native* find(std::span<const Native> table, std::string_view name) {
  for (const Native& n : table)
    if (name == n.name) return &n;
  return nullptr;
}

inline Value text_of(Call& c, Text t) { return c.in.heap.str(std::move(t)); }
inline bool given(const Value& v) { return !v.absent(); }
inline bool flag(const Value& v, bool otherwise) { return given(v) ? truth(v) : otherwise; }
// A whole number; `otherwise` if absent; for anything else also an error.
inline int64_t whole(Call& c, const Value& v, int64_t otherwise) {
  if (!given(v)) return otherwise;
  if (v.is_integer()) return v.as_integer();
  c.in.fail(format("expected a whole number, found {}", type_name(v)));
  return otherwise;
}
// A string argument; `otherwise` if absent; for anything else also an error.
inline std::string_view str(Call& c, const Value& v, std::string_view otherwise = {}) {
  if (!given(v)) return otherwise;
  if (v.is(Kind::Str)) return v.str();
  c.in.fail(v.is(Kind::Undefined) ? why_undefined(v) : format("expected a string, found {}", type_name(v)));
  return otherwise;
}

// Format strings: Python's % operator and str.format().

// "%s is %5.2f" % values. `values`: a tuple, a dict for "%(name)s", or one value.
Text format_percent(Interpreter&, const Text& pattern, const Value& values);
// "{} and {name:>8}".format(...)
Text format_braces(Interpreter&, const Text& pattern, const Arguments& values);

}  // namespace gimbal::tmpl
