#include "template/value.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal::tmpl {

const Value* Dict::find(const Value& key) const {
  if (key.is(Kind::Str)) return find(key.str());
  for (const auto& [k, v] : items)
    if (equal(k, key)) return &v;
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : items)
    if (k.is(Kind::Str) && k.str() == key) return &v;
  return nullptr;
}

void Dict::set(const Value& key, const Value& value) {
  if (const Value* v = find(key)) *const_cast<Value*>(v) = value;
  else items.emplace_back(key, value);
}

uint32_t weight(const Value& v) {
  switch (v.kind) {
    case Kind::Str: return uint32_t(1 + v.str().size() / 16);
    case Kind::List: return v.list->extent.weight;
    case Kind::Dict: return v.dict->extent.weight;
    default: return 1;
  }
}

const Text* Heap::text(Text t) {
  bytes_ += sizeof(Text) + t.bytes.size() + t.foreign.size() * sizeof(Span);
  return &texts_.emplace_back(std::move(t));
}

Value Heap::str(std::string_view s, bool foreign) {
  Text t;
  t.append(s, foreign);
  return str(std::move(t));
}

void Heap::count(Extent& of, const Value& part) {
  of.weight = uint32_t(std::min<uint64_t>(uint64_t(of.weight) + weight(part), UINT32_MAX));
  const uint32_t below = part.is(Kind::List)   ? part.list->extent.depth
                         : part.is(Kind::Dict) ? part.dict->extent.depth
                                               : 0;
  of.depth = std::max(of.depth, below + 1);
  largest_ = {std::max(largest_.weight, of.weight), std::max(largest_.depth, of.depth)};
}

Value Heap::list(List l) {
  bytes_ += sizeof(List) + l.items.size() * sizeof(Value);
  for (const Value& item : l.items) count(l.extent, item);
  return Value::of(&lists_.emplace_back(std::move(l)));
}

Value Heap::range(int64_t start, int64_t stop, int64_t step) {
  List l{ListKind::Range, {}, {start, stop, step}};
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) l.items.push_back(Value::of(i));
  return list(std::move(l));
}

Value Heap::dict(Dict d) {
  bytes_ += sizeof(Dict) + d.items.size() * 2 * sizeof(Value);
  for (const auto& [key, value] : d.items) count(d.extent, key), count(d.extent, value);
  return Value::of(&dicts_.emplace_back(std::move(d)));
}

Object* Heap::object(Object::Type type, std::string_view name) {
  bytes_ += sizeof(Object);
  Object& o = objects_.emplace_back();
  o.type = type;
  o.name = name;
  return &o;
}

Value Heap::undefined(std::string_view name, const char* owner) {
  bytes_ += sizeof(Missing) + name.size();
  Value v(Kind::Undefined);
  v.missing = &missing_.emplace_back(Missing{std::string(name), owner});
  return v;
}

bool truth(const Value& v) {
  switch (v.kind) {
    case Kind::Absent:
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool: return v.flag;
    case Kind::Int: return v.integer != 0;
    case Kind::Float: return v.number != 0;
    case Kind::Str: return !v.str().empty();
    case Kind::List: return v.list->kind == ListKind::Generator || !v.list->items.empty();
    case Kind::Dict: return !v.dict->items.empty();
    case Kind::Object: return v.object->type != Object::Loop || !v.object->self.list->items.empty();
  }
  return false;
}

namespace {

// Lists equal lists and tuples equal tuples; views of keys are sets, but no template compares them.
int family(ListKind k) { return k == ListKind::Group ? int(ListKind::Tuple) : int(k); }

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is(Kind::Float) || b.is(Kind::Float) ? a.as_double() == b.as_double()
                                                  : a.as_integer() == b.as_integer();
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::Str: return a.str() == b.str();
    case Kind::List: {
      if (a.list == b.list) return true;
      if (family(a.list->kind) != family(b.list->kind) || a.list->kind == ListKind::Generator) return false;
      const auto &x = a.list->items, &y = b.list->items;
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); i++)
        if (!equal(x[i], y[i])) return false;
      return true;
    }
    case Kind::Dict:
      if (a.dict->items.size() != b.dict->items.size()) return false;
      for (const auto& [k, v] : a.dict->items) {
        const Value* other = b.dict->find(k);
        if (!other || !equal(v, *other)) return false;
      }
      return true;
    case Kind::Object: return a.object == b.object;
    default: return true;
  }
}

bool compare(const Value& a, const Value& b, int& order) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::Float) || b.is(Kind::Float)) {
      const double x = a.as_double(), y = b.as_double();
      order = x < y ? -1 : x > y ? 1 : 0;
    } else {
      const int64_t x = a.as_integer(), y = b.as_integer();
      order = x < y ? -1 : x > y ? 1 : 0;
    }
    return true;
  }
  if (a.is(Kind::Str) && b.is(Kind::Str)) {  // UTF-8 sorts as its characters do
    order = a.str().compare(b.str());
    return true;
  }
  if (!a.is(Kind::List) || !b.is(Kind::List) || family(a.list->kind) != family(b.list->kind) ||
      family(a.list->kind) > int(ListKind::Tuple))
    return false;
  const auto &x = a.list->items, &y = b.list->items;
  for (size_t i = 0; i < x.size() && i < y.size(); i++)
    if (!equal(x[i], y[i])) return compare(x[i], y[i], order);
  order = x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  return true;
}

bool hashable(const Value& v) {
  if (v.is(Kind::Dict)) return false;
  if (!v.is(Kind::List)) return true;
  if (v.list->kind == ListKind::List) return false;
  for (const Value& item : v.list->items)
    if (!hashable(item)) return false;
  return true;
}

const char* type_name(const Value& v) {
  switch (v.kind) {
    case Kind::Absent:
    case Kind::Undefined: return "Undefined";
    case Kind::None: return "NoneType";
    case Kind::Bool: return "bool";
    case Kind::Int: return "int";
    case Kind::Float: return "float";
    case Kind::Str: return v.text->markup ? "Markup" : "str";
    case Kind::Dict: return "dict";
    case Kind::List: {
      static constexpr const char* kNames[] = {"list",        "tuple",      "range",     "dict_keys",
                                               "dict_values", "dict_items", "generator", "tuple"};
      return kNames[int(v.list->kind)];
    }
    case Kind::Object: {
      static constexpr const char* kNames[] = {
          "Namespace", "Macro", "builtin_function_or_method", "function", "LoopContext", "Cycler", "Joiner"};
      return kNames[int(v.object->type)];
    }
  }
  return "";
}

std::string why_undefined(const Value& v) {
  if (v.absent() || !v.missing) return "the value is undefined";
  if (!v.missing->owner) return format("'{}' is undefined", v.missing->name);
  return format("'{} object' has no attribute '{}'", v.missing->owner, v.missing->name);
}

}  // namespace gimbal::tmpl
