// Whether a value satisfies a schema: for the constants that the schema itself lists, and for tests.
#include <algorithm>

#include "base/format.h"
#include "grammar/schema_check.h"

namespace gimbal {
namespace {

constexpr int kMaxDepthOfValues = 200;
constexpr size_t kMaxWork = 2'000'000;  // a second or two
constexpr const char* kTooMuch = "it takes too many comparisons of constants";

uint8_t type_of(const Json& v) {
  if (v.is_null()) return kNull;
  if (v.is_boolean()) return kBoolean;
  if (v.is_object()) return kObject;
  if (v.is_array()) return kArray;
  if (v.is_string()) return kString;
  return Decimal::of(v.dump()).whole_number() ? kInteger : kFraction;
}

uint32_t characters(const std::string& utf8) {
  return uint32_t(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

}  // namespace

bool same_value(const Json& a, const Json& b) {
  if (!a.is_structured() || a.type() != b.type()) return a == b;
  if (a.size() != b.size()) return false;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_value);
  for (const auto& [name, value] : a.items())
    if (const Json* other = field(b, name); !other || !same_value(value, *other)) return false;
  return true;
}

Result<bool> SchemaReader::holds(const Json& value, const Json& schema, const Json* known, int depth) const {
  if (depth > kMaxDepthOfValues) return error(schema, "it refers to itself without an end", "");
  if (++work_ > kMaxWork) return error(schema, kTooMuch, "list fewer");
  if (!(type_of(value) & types(schema))) return false;
  if (schema.is_boolean()) return true;
  if (const Json* v = field(schema, "const"); v && v != known && !same_value(*v, value)) return false;
  if (const Json* v = field(schema, "enum");
      v && v != known &&
      std::none_of(v->begin(), v->end(), [&](const Json& one) { return same_value(one, value); }))
    return false;
  if (const Json* to = referred(schema)) {
    auto ok = holds(value, *to, known, depth + 1);
    if (!ok || !*ok) return ok;
  }
  for (const char* name : {"allOf", "anyOf", "oneOf"}) {
    const Json* list = field(schema, name);
    if (!list) continue;
    size_t held = 0;
    for (const Json& s : *list) {
      auto ok = holds(value, s, known, depth + 1);
      if (!ok) return ok;
      held += *ok;
    }
    if (name[0] == 'o' ? held != 1 : held < (name[1] == 'l' ? list->size() : 1)) return false;
  }
  if (const Json* no = field(schema, "not")) {
    auto ok = holds(value, *no, nullptr, depth + 1);
    if (!ok || *ok) return ok ? Result<bool>(false) : ok;
  }
  if (const Json* condition = field(schema, "if")) {
    auto ok = holds(value, *condition, nullptr, depth + 1);
    if (!ok) return ok;
    const Json* then = field(schema, *ok ? "then" : "else");
    if (then) ok = holds(value, *then, known, depth + 1);
    if (then && (!ok || !*ok)) return ok;
  }
  if (value.is_array()) return array_holds(value, schema, depth);
  if (value.is_object()) return object_holds(value, schema, depth);
  if (value.is_string()) return string_holds(value.get_ref<const std::string&>(), schema);
  if (!value.is_number()) return true;
  NumberBounds bounds;
  read(schema, bounds);
  return bounds.hold(Decimal::of(value.dump()));
}

Result<bool> SchemaReader::string_holds(const std::string& text, const Json& schema) const {
  StringRules rules;
  read(schema, rules);
  const uint32_t length = characters(text);
  if (length < rules.min || length > rules.max) return false;
  for (const auto* list : {&rules.patterns, &rules.other_patterns})
    for (const std::string& p : *list) {
      const auto known = machine(p, schema);
      if (!known) return known.error();
      if ((*known)->matches(text) != (list == &rules.patterns)) return false;
    }
  return std::find(rules.other_texts.begin(), rules.other_texts.end(), text) == rules.other_texts.end();
}

Result<const CharMachine*> SchemaReader::machine(const std::string& pattern, const Json& schema) const {
  for (const auto& [known, machine] : patterns_)
    if (known == pattern) return &machine;
  auto made = CharMachine::pattern(pattern);
  if (!made) return error(schema, made.error().message, made.error().remedy);
  work_ += 100 * made->states().size();
  return &patterns_.emplace_back(pattern, *std::move(made)).second;
}

Result<bool> SchemaReader::array_holds(const Json& value, const Json& schema, int depth) const {
  if (const Json* v = field(schema, "minItems"); v && value.size() < count_of(*v)) return false;
  if (const Json* v = field(schema, "maxItems"); v && value.size() > count_of(*v)) return false;
  const Json *first = first_items(schema), *others = other_items(schema);
  for (size_t i = 0; i < value.size(); i++) {
    const Json* of = first && i < first->size() ? &(*first)[i] : others;
    auto ok = of ? holds(value[i], *of, nullptr, depth + 1) : Result<bool>(true);
    if (!ok || !*ok) return ok;
  }
  if (const Json* v = field(schema, "uniqueItems"); v && *v == true)
    for (size_t i = 0; i < value.size(); i++)
      for (size_t j = 0; j < i; j++) {
        if (++work_ > kMaxWork) return error(schema, kTooMuch, "list fewer");
        if (same_value(value[i], value[j])) return false;
      }
  if (const Json* of = field(schema, "contains")) {
    uint32_t found = 0;
    for (const Json& item : value) {
      auto ok = holds(item, *of, nullptr, depth + 1);
      if (!ok) return ok;
      found += *ok;
    }
    const Json *least = field(schema, "minContains"), *most = field(schema, "maxContains");
    if (found < (least ? count_of(*least) : 1) || (most && found > count_of(*most))) return false;
  }
  return true;
}

Result<bool> SchemaReader::object_holds(const Json& value, const Json& schema, int depth) const {
  auto has_all = [&](const Json& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const Json& n) { return value.contains(n.get_ref<const std::string&>()); });
  };
  if (const Json* v = field(schema, "required"); v && !has_all(*v)) return false;
  if (const Json* v = field(schema, "minProperties"); v && value.size() < count_of(*v)) return false;
  if (const Json* v = field(schema, "maxProperties"); v && value.size() > count_of(*v)) return false;
  for (const char* name : {"dependentRequired", "dependentSchemas", "dependencies"})
    if (const Json* depends = field(schema, name))
      for (const auto& [key, what] : depends->items()) {
        if (!value.contains(key)) continue;
        auto ok = what.is_array() ? Result<bool>(has_all(what)) : holds(value, what, nullptr, depth + 1);
        if (!ok || !*ok) return ok;
      }
  const Json *properties = field(schema, "properties"), *others = field(schema, "additionalProperties"),
             *patterns = field(schema, "patternProperties"), *names = field(schema, "propertyNames");
  for (const auto& [name, item] : value.items()) {
    if (names) {
      auto ok = holds(Json(name), *names, nullptr, depth + 1);
      if (!ok || !*ok) return ok;
    }
    bool known = false;
    auto fits = [&](const Json& of) {
      known = true;
      return holds(item, of, nullptr, depth + 1);
    };
    if (const Json* of = properties ? field(*properties, name) : nullptr)
      if (auto ok = fits(*of); !ok || !*ok) return ok;
    if (patterns)
      for (const auto& [pattern, of] : patterns->items()) {
        const auto m = machine(pattern, schema);
        if (!m) return m.error();
        if (!(*m)->matches(name)) continue;
        if (auto ok = fits(of); !ok || !*ok) return ok;
      }
    if (!known && others)
      if (auto ok = fits(*others); !ok || !*ok) return ok;
  }
  return true;
}

}  // namespace gimbal
