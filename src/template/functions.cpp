// The global functions of templates, including those that transformers adds: raise_exception and
// strftime_now.
#include <ctime>

#include "template/natives.h"

namespace gimbal::tmpl {
namespace {

constexpr int64_t kMaxRange = 100000;  // of jinja2's sandbox

Value g_range(Call& c) {
  const size_t n = given(c.a[2]) ? 3 : given(c.a[1]) ? 2 : 1;
  const int64_t start = n > 1 ? whole(c, c.a[0], 0) : 0, stop = whole(c, c.a[n > 1], 0),
                step = whole(c, c.a[2], 1);
  if (!given(c.a[0])) return c.in.fail("range() needs a number");
  if (step == 0) return c.in.fail("range() arg 3 must not be zero");
  const bool any = step > 0 ? start < stop : start > stop;
  const uint64_t distance = step > 0 ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
  const uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  if (any && (distance - 1) / stride + 1 > uint64_t(kMaxRange))
    return c.in.fail(format("a range of more than {} numbers", kMaxRange));
  if (any && stride >= distance)
    return c.in.heap.range(start, step > 0 ? start + 1 : start - 1, step > 0 ? 1 : -1);
  return c.in.failed() ? Value(Kind::Undefined) : c.in.heap.range(start, any ? stop : start, step);
}

// The fields that dict() and namespace() are called with.
Dict fields(Call& c) {
  Dict d;
  for (const Value& from : c.given.positional) {
    if (from.is(Kind::Dict)) {
      for (const auto& [key, value] : from.dict->items)
        if (c.in.spend(d.items.size() / 8)) d.set(key, value);
      continue;
    }
    for (const Value& pair : c.in.items(from)) {
      const auto two = c.in.items(pair);
      if (!c.in.spend(d.items.size() / 8)) return d;
      if (two.size() != 2 || !hashable(two[0])) {
        c.in.fail("dict() needs pairs of a key and a value");
        return d;
      }
      d.set(two[0], two[1]);
    }
  }
  for (const auto& [name, v] : c.given.named)
    if (c.in.spend(d.items.size() / 8)) d.set(c.in.heap.str(name), v);
  return d;
}

Value g_dict(Call& c) { return c.in.heap.dict(fields(c)); }
Value g_namespace(Call& c) {
  Object* o = c.in.heap.object(Object::Namespace);
  o->fields = fields(c);
  return Value::of(o);
}

Value g_cycler(Call& c) {
  if (c.given.positional.empty()) return c.in.fail("at least one item has to be provided");
  Object* o = c.in.heap.object(Object::Cycler);
  o->self = c.in.heap.list(c.given.positional);
  return Value::of(o);
}
Value g_joiner(Call& c) {
  Object* o = c.in.heap.object(Object::Joiner);
  o->self = given(c.a[0]) ? c.a[0] : c.in.heap.str(", ");
  return Value::of(o);
}

Value g_raise(Call& c) { return c.in.fail(to_text(c.a[0]).bytes, reason::kTemplateRaised); }

// As the C library's strftime in the C locale. A time without a zone: %z and %Z are empty, as in Python.
Value g_strftime(Call& c) {
  std::string pattern;
  const std::string_view asked = str(c, c.a[0]);
  for (size_t i = 0; i < asked.size(); i++) {
    const char next = i + 1 < asked.size() ? asked[i + 1] : 0;
    if (asked[i] != '%' || !next) pattern += asked[i];
    else if (i++; next == 'f') pattern += "000000";
    else if (next != 'z' && next != 'Z') (pattern += '%') += next;
  }
  if (asked.size() > 1000) return c.in.fail("a date format that is too long");
  std::tm now = c.in.options().now;
  std::string out(100 * (pattern.size() + 1), 0);
  pattern += ' ';  // so that 0 is an error and not an empty date
  const size_t n = std::strftime(out.data(), out.size(), pattern.c_str(), &now);
  if (n == 0) return c.in.fail("a date format that the C library refuses");
  return c.in.heap.str(out.substr(0, n - 1));
}

constexpr Native kFunctions[] = {
    {"range", "start stop step", g_range},
    {"dict", "*", g_dict},
    {"namespace", "*", g_namespace},
    {"cycler", "*", g_cycler},
    {"joiner", "sep", g_joiner},
    {"raise_exception", "message", g_raise},
    {"strftime_now", "format", g_strftime},
};

}  // namespace

const Native* find_function(std::string_view name) { return find(kFunctions, name); }

}  // namespace gimbal::tmpl
