// Operators, indices and attributes, as Python's types have them.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "template/interpreter.h"
#include "template/natives.h"
#include "template/text.h"

namespace gimbal::tmpl {
namespace {

int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// False when the result has more than 64 bits.
bool integer_operation(char sign, int64_t a, int64_t b, int64_t& out) {
  switch (sign) {
    case '+': return !__builtin_add_overflow(a, b, &out);
    case '-': return !__builtin_sub_overflow(a, b, &out);
    case '*': return !__builtin_mul_overflow(a, b, &out);
    case '%': return out = floor_mod(a, b), true;
    case 'd':
      return b != -1 ? (out = (a - floor_mod(a, b)) / b, true) : !__builtin_sub_overflow(int64_t(0), a, &out);
    default: break;
  }
  out = 1;  // power
  for (; b > 0; b >>= 1) {
    if (b & 1 && __builtin_mul_overflow(out, a, &out)) return false;
    if (b > 1 && __builtin_mul_overflow(a, a, &a)) return false;
  }
  return true;
}

double float_operation(char sign, double a, double b) {
  switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case 'd': return std::floor(a / b);
    case '%': {
      const double r = std::fmod(a, b);
      if (r == 0) return std::copysign(0.0, b);
      return (r < 0) != (b < 0) ? r + b : r;
    }
    default: return std::pow(a, b);
  }
}

}  // namespace

Value Interpreter::binary(std::string_view sign, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is(Kind::Undefined)) return fail(why_undefined(*v));
  const char op = sign == "//" ? 'd' : sign == "**" ? 'p' : sign[0];
  if (a.is_number() && b.is_number()) {
    if ((op == '/' || op == 'd' || op == '%') && b.as_double() == 0) return fail("division by zero");
    const bool whole = a.is_integer() && b.is_integer();
    if (op == 'p' && a.as_double() == 0 && b.as_double() < 0)
      return fail("0.0 cannot be raised to a negative power");
    if (!whole || op == '/' || (op == 'p' && b.as_integer() < 0))
      return Value::of(float_operation(op, a.as_double(), b.as_double()));
    int64_t out = 0;
    if (!integer_operation(op, a.as_integer(), b.as_integer(), out))
      return fail("a whole number of more than 64 bits");
    return Value::of(out);
  }
  if (op == '%' && a.is(Kind::Str)) return heap.str(format_percent(*this, *a.text, b));
  if (op == '+' && a.is(Kind::Str) && b.is(Kind::Str)) return concatenate({a, b}, true);
  if (op == '+' && a.is(Kind::List) && b.is(Kind::List) && a.list->kind == b.list->kind &&
      a.list->kind <= ListKind::Tuple) {
    std::vector<Value> both = a.list->items;
    both.insert(both.end(), b.list->items.begin(), b.list->items.end());
    return heap.list(std::move(both), a.list->kind);
  }
  if (op == '*' && (a.is_integer() || b.is_integer())) {
    const Value& what = a.is_integer() ? b : a;
    const int64_t times = std::max<int64_t>(0, (a.is_integer() ? a : b).as_integer());
    const bool list = what.is(Kind::List) && what.list->kind <= ListKind::Tuple;
    const size_t size = list ? what.list->items.size() : what.is(Kind::Str) ? what.str().size() : 0;
    if (times && size > options_.limits.output_bytes / size_t(times))
      return stop("a value repeated too often");
    if (what.is(Kind::Str)) {
      Text out;
      for (int64_t i = 0; i < times && size; i++) out.append(*what.text);
      return heap.str(std::move(out));
    }
    if (list) {
      std::vector<Value> out;
      for (int64_t i = 0; i < times && size; i++)
        out.insert(out.end(), what.list->items.begin(), what.list->items.end());
      return heap.list(std::move(out), what.list->kind);
    }
  }
  if (op == '+' && a.is(Kind::Str))
    return fail(format("can only concatenate str (not \"{}\") to str", type_name(b)));
  return fail(format("unsupported operand type(s) for {}: '{}' and '{}'", sign, type_name(a), type_name(b)));
}

bool Interpreter::compares(std::string_view sign, const Value& a, const Value& b) {
  spend(1 + std::min(weight(a), weight(b)) / 4);
  if (sign == "in") return contains(b, a);
  if (sign == "not in") return !contains(b, a);
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  for (const Value* v : {&a, &b})
    if (v->is(Kind::Undefined)) return fail(why_undefined(*v)), false;
  int order = 0;
  if (!compare(a, b, order)) {
    fail(format("'{}' not supported between instances of '{}' and '{}'", sign, type_name(a), type_name(b)));
    return false;
  }
  const bool nan = (a.is(Kind::Float) && std::isnan(a.number)) || (b.is(Kind::Float) && std::isnan(b.number));
  if (nan) return false;
  return sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
}

bool Interpreter::contains(const Value& in, const Value& what) {
  spend(weight(in) / 4);
  if (in.is(Kind::Dict)) {
    if (!hashable(what)) return fail(format("unhashable type: '{}'", type_name(what))), false;
    return in.dict->find(what);
  }
  if (in.is(Kind::Str)) {
    if (what.is(Kind::Str)) return find_text(in.str(), what.str()) != std::string_view::npos;
    fail(format("'in <string>' requires string as left operand, not {}", type_name(what)));
    return false;
  }
  for (const Value& v : items(in))
    if (equal(v, what)) return true;
  return false;
}

std::vector<Value> Interpreter::items(const Value& of) {
  std::vector<Value> out;
  switch (of.kind) {
    case Kind::Undefined:
    case Kind::Absent: break;
    case Kind::Str:
      spend(of.str().size());
      for (size_t at = 0; at < of.str().size() && !failed();) {
        const size_t next = next_code(of.str(), at);
        Text one;
        one.append(*of.text, at, next);
        out.push_back(heap.str(std::move(one)));
        at = next;
        spend(0);
      }
      break;
    case Kind::List:
      if (of.list->kind == ListKind::Generator && std::exchange(of.list->used_up, true)) break;
      spend(of.list->items.size());
      out = of.list->items;
      break;
    case Kind::Dict:
      spend(of.dict->items.size());
      for (const auto& [key, value] : of.dict->items) out.push_back(key);
      break;
    default: fail(format("'{}' object is not iterable", type_name(of)));
  }
  return out;
}

Value Interpreter::attribute(const Value& of, std::string_view name) {
  if (of.is(Kind::Undefined)) return fail(why_undefined(of));
  if (of.is(Kind::Object)) {
    Object& o = *of.object;
    if (o.type == Object::Namespace) {
      if (const Value* v = o.fields.find(name)) return *v;
    } else if (o.type == Object::Loop) {
      const auto& all = o.self.list->items;
      const auto number = [](size_t n) { return Value::of(int64_t(n)); };
      if (name == "index") return number(o.index + 1);
      if (name == "index0") return number(o.index);
      if (name == "revindex") return number(all.size() - o.index);
      if (name == "revindex0") return number(all.size() - o.index - 1);
      if (name == "first") return Value::of(o.index == 0);
      if (name == "last") return Value::of(o.index + 1 == all.size());
      if (name == "length") return number(all.size());
      if (name == "depth") return number(o.depth + 1);
      if (name == "depth0") return number(o.depth);
      if (name == "previtem")
        return o.index ? all[o.index - 1] : heap.undefined("there is no previous item", "loop");
      if (name == "nextitem")
        return o.index + 1 < all.size() ? all[o.index + 1] : heap.undefined("there is no next item", "loop");
    } else if (o.type == Object::Macro && name == "name") {
      return heap.str(o.name);
    } else if (o.type == Object::Cycler && name == "current") {
      return o.self.list->items[o.index];
    }
  }
  if (of.is(Kind::List) && of.list->kind == ListKind::Group) {
    if (name == "grouper") return of.list->items[0];
    if (name == "list") return of.list->items[1];
  }
  if (const Native* m = find_method(of, name)) {
    Object* bound = heap.object(Object::Method, m->name);
    bound->self = of;
    return Value::of(bound);
  }
  if (of.is(Kind::Dict)) {
    spend(of.dict->items.size() / 8);
    if (const Value* v = of.dict->find(name)) return *v;
  }
  return heap.undefined(name, type_name(of));
}

Value Interpreter::item(const Value& of, const Value& index) {
  if (of.is(Kind::Undefined)) return fail(why_undefined(of));
  if (index.is_integer() && ((of.is(Kind::List) && of.list->is_sequence()) || of.is(Kind::Str))) {
    const bool str = of.is(Kind::Str);
    spend(str ? of.str().size() / 16 : 0);
    const auto size = int64_t(str ? count_codes(of.str()) : of.list->items.size());
    int64_t i = index.as_integer();
    if (i < 0) i += size;
    if (i < 0 || i >= size) return heap.undefined(repr(index), type_name(of));
    if (!str) return of.list->items[size_t(i)];
    const size_t at = byte_of(of.str(), size_t(i));
    Text one;
    one.append(*of.text, at, next_code(of.str(), at));
    return heap.str(std::move(one));
  }
  if (of.is(Kind::Dict) && hashable(index)) {
    spend(of.dict->items.size() / 8);
    if (const Value* v = of.dict->find(index)) return *v;
  }
  if (index.is(Kind::Str)) return attribute(of, index.str());
  return heap.undefined(repr(index), type_name(of));
}

Value Interpreter::slice(const Value& of, const Value& from, const Value& to, const Value& by) {
  if (of.is(Kind::Undefined)) return fail(why_undefined(of));
  const bool str = of.is(Kind::Str);
  if (!str && !(of.is(Kind::List) && of.list->is_sequence())) return heap.undefined("slice", type_name(of));
  for (const Value* v : {&from, &to, &by})
    if (!v->is(Kind::None) && !v->is_integer()) return fail("slice indices must be integers or None");
  const int64_t step = by.is(Kind::None) ? 1 : by.as_integer();
  if (step == 0) return fail("slice step cannot be zero");
  if (str && from.is(Kind::None) && to.is(Kind::None) && step == 1) return of;
  std::vector<Value> parts;
  if (str && step != 1) parts = items(of);
  const auto size = int64_t(!str ? of.list->items.size() : step != 1 ? parts.size() : count_codes(of.str()));
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is(Kind::None)) return otherwise;
    const int64_t i = v.as_integer();
    return std::clamp(i < 0 ? i + size : i, low, high);
  };
  const int64_t begin = bound(from, step > 0 ? low : high), end = bound(to, step > 0 ? high : low);
  spend(uint64_t(size) / 16 + 1);
  if (str && step == 1) {
    const size_t at = byte_of(of.str(), size_t(begin));
    const size_t stop = begin < end ? at + byte_of(of.str().substr(at), size_t(end - begin)) : at;
    Text out;
    out.append(*of.text, at, stop);
    return heap.str(std::move(out));
  }
  std::vector<Value> out;
  const std::vector<Value>& all = str ? parts : of.list->items;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    out.push_back(all[size_t(i)]);
    if (step > size || step < -size) break;
  }
  if (str) return concatenate(out);
  if (of.list->kind == ListKind::Range) {
    const auto& r = of.list->range;
    return heap.range(r[0] + begin * r[2], r[0] + end * r[2], r[2] * step);
  }
  return heap.list(std::move(out), of.list->kind == ListKind::List ? ListKind::List : ListKind::Tuple);
}

Text Interpreter::escaped(const Text& t) {
  Text out;
  out.markup = true;
  if (t.markup) {
    out.append(t);
    return out;
  }
  for (size_t at = 0; at < t.bytes.size();) {
    const size_t next = t.bytes.find_first_of("&<>'\"", at);
    out.append(t, at, std::min(next, t.bytes.size()));
    if (next == t.bytes.npos) break;
    const char c = t.bytes[next];
    Text one;
    one.append(t, next, next + 1);
    out.append(one.with(c == '&'   ? "&amp;"
                        : c == '<' ? "&lt;"
                        : c == '>' ? "&gt;"
                        : c == '"' ? "&#34;"
                                   : "&#39;"));
    at = next + 1;
  }
  return out;
}

// `escapes`: text beside markup is escaped, and the whole is markup.
Value Interpreter::concatenate(const std::vector<Value>& parts, bool escapes) {
  bool markup = false;
  size_t bytes = 0;
  for (const Value& v : parts) {
    markup |= escapes && v.is(Kind::Str) && v.text->markup;
    bytes += v.is(Kind::Str) ? v.str().size() : weight(v);
  }
  Text out;
  if (!spend(bytes / 16)) return Value(Kind::Undefined);
  for (const Value& v : parts) {
    if (markup) out.append(escaped(to_text(v)));
    else if (v.is(Kind::Str)) out.append(*v.text);
    else out.append(to_text(v));
  }
  out.markup = markup;
  return heap.str(std::move(out));
}

}  // namespace gimbal::tmpl
