#include "grammar/schema_check.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr int kMaxNested = 200;
constexpr size_t kMaxWork = 2'000'000;  // a second or two

struct Type {
  const char* name;
  uint8_t bits;
};
constexpr Type kTypes[] = {{"null", kNull},     {"boolean", kBoolean}, {"object", kObject}, {"array", kArray},
                           {"string", kString}, {"integer", kInteger}, {"number", kNumber}};

uint8_t type_named(const Json& name) {
  for (const Type& t : kTypes)
    if (name.is_string() && name.get_ref<const std::string&>() == t.name) return t.bits;
  return 0;
}

// A keyword: the type of values that it applies to, and its own required type.
struct Keyword {
  enum Kind : uint8_t {
    Note,
    Schema,
    List,
    Map,
    Count,
    Bound,
    Text,
    Names,
    Types,
    Values,
    Any,
    Schemas
  } kind;
  uint8_t of;
  const char* name;
};
constexpr Keyword kKeywords[] = {
    {Keyword::Note, 0, "title"},
    {Keyword::Note, 0, "description"},
    {Keyword::Note, 0, "default"},
    {Keyword::Note, 0, "examples"},
    {Keyword::Note, 0, "$schema"},
    {Keyword::Note, 0, "$id"},
    {Keyword::Note, 0, "$comment"},
    {Keyword::Note, 0, "deprecated"},
    {Keyword::Note, 0, "readOnly"},
    {Keyword::Note, 0, "writeOnly"},
    {Keyword::Map, 0, "$defs"},
    {Keyword::Map, 0, "definitions"},
    {Keyword::Text, 0, "$ref"},
    {Keyword::List, 0, "anyOf"},
    {Keyword::List, 0, "oneOf"},
    {Keyword::List, 0, "allOf"},
    {Keyword::Types, 0, "type"},
    {Keyword::Values, 0, "enum"},
    {Keyword::Any, 0, "const"},
    {Keyword::Map, kObject, "properties"},
    {Keyword::Names, kObject, "required"},
    {Keyword::Schema, kObject, "additionalProperties"},
    {Keyword::Schema, kArray, "items"},
    {Keyword::Schemas, kArray, "prefixItems"},
    {Keyword::Count, kArray, "minItems"},
    {Keyword::Count, kArray, "maxItems"},
    {Keyword::Count, kString, "minLength"},
    {Keyword::Count, kString, "maxLength"},
    {Keyword::Text, kString, "pattern"},
    {Keyword::Text, kString, "format"},
    {Keyword::Bound, kNumber, "minimum"},
    {Keyword::Bound, kNumber, "maximum"},
    {Keyword::Bound, kNumber, "exclusiveMinimum"},
    {Keyword::Bound, kNumber, "exclusiveMaximum"},
};

const Keyword* keyword_named(const std::string& name) {
  for (const Keyword& k : kKeywords)
    if (name == k.name) return &k;
  return nullptr;
}

std::string escaped_key(std::string key) {
  for (size_t i = 0; i < key.size(); i++)
    if (key[i] == '~' || key[i] == '/') key.replace(i, 1, key[i] == '~' ? "~0" : "~1"), i++;
  return key;
}

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

uint32_t count_of(const Json& v) { return uint32_t(std::min<uint64_t>(v.get<uint64_t>(), kUnbounded)); }

}  // namespace

const Json* field(const Json& schema, const char* name) {
  if (!schema.is_object()) return nullptr;
  const auto it = schema.find(name);
  return it == schema.end() ? nullptr : &*it;
}

Error SchemaReader::error(const Json& schema, std::string_view what, std::string_view remedy) const {
  const auto it = numbers_.find(&schema);
  return {Code::Usage,
          format("JSON schema, at {}: {}", it == numbers_.end() ? "#" : escaped(schemas_[it->second].place),
                 what),
          remedy, "", "json_schema"};
}

Status SchemaReader::check() {
  if (Status ok = check(root_, "#", 0); !ok) return ok;
  for (const auto& [schema, place] : schemas_)
    if (const Json* ref = field(*schema, "$ref"); ref && !referred(*schema))
      return error(*schema,
                   format("$ref: there is no schema {}", gimbal::quoted(ref->get_ref<const std::string&>())),
                   "name a schema inside this one, such as #/$defs/name");
  return Done{};
}

Status SchemaReader::check(const Json& schema, std::string place, int depth) {
  numbers_[&schema] = places_[place] = uint32_t(schemas_.size());
  schemas_.push_back({&schema, place});
  if (schema.is_boolean()) return Done{};
  if (!schema.is_object()) return error(schema, "a schema is an object or a boolean", "");
  if (depth > kMaxNested)
    return error(schema, format("more than {} schemas in each other", kMaxNested), "use $defs");
  for (const auto& [keyword, value] : schema.items())
    if (Status ok = check_keyword(schema, keyword, value, place, depth); !ok) return ok;
  return Done{};
}

Status SchemaReader::check_list(const Json& list, const std::string& place, int depth) {
  int i = 0;
  for (const Json& item : list)
    if (Status ok = check(item, format("{}/{}", place, i++), depth + 1); !ok) return ok;
  return Done{};
}

Status SchemaReader::check_keyword(const Json& schema, const std::string& keyword, const Json& value,
                                   const std::string& place, int depth) {
  const Keyword* k = keyword_named(keyword);
  // A keyword without effect is allowed.
  if (!k && keyword == "uniqueItems" && value == false) return Done{};
  if (!k)
    return error(schema, format("the keyword {} is not supported", gimbal::quoted(keyword)),
                 "leave it out, or write the schema without it");
  auto must_be = [&](const char* what) {
    return error(schema, format("'{}' must be {}", keyword, what), "");
  };
  const std::string below = format("{}/{}", place, keyword);
  switch (k->kind) {
    case Keyword::Note:
    case Keyword::Any: break;
    case Keyword::Schema:
      if (value.is_array())
        return error(schema, format("'{}' as a list is not supported", keyword), "use prefixItems");
      return check(value, below, depth + 1);
    case Keyword::List:
      if (!value.is_array() || value.empty()) return must_be("a list of schemas that is not empty");
      return check_list(value, below, depth);
    case Keyword::Schemas:
      if (!value.is_array()) return must_be("a list of schemas");
      return check_list(value, below, depth);
    case Keyword::Map:
      if (!value.is_object()) return must_be("an object of schemas");
      for (const auto& [name, s] : value.items())
        if (Status ok = check(s, format("{}/{}", below, escaped_key(name)), depth + 1); !ok) return ok;
      break;
    case Keyword::Count:
      if (value.is_number_float() && value.get<double>() >= 0 && value.get<double>() < 4e9 &&
          type_of(value) == kInteger)
        break;
      if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<int64_t>() >= 0))
        return must_be("a whole number of 0 or more");
      break;
    case Keyword::Bound:
      if (!value.is_number()) return must_be("a number");
      break;
    case Keyword::Text:
      if (!value.is_string()) return must_be("a text");
      if (keyword == "format" && !pattern_of_format(value.get_ref<const std::string&>()))
        return error(
            schema,
            format("the format {} is not supported", gimbal::quoted(value.get_ref<const std::string&>())),
            "use a 'pattern'; known formats: " + known_formats());
      break;
    case Keyword::Names:
      if (!value.is_array() ||
          !std::all_of(value.begin(), value.end(), [](const Json& n) { return n.is_string(); }))
        return must_be("a list of names");
      break;
    case Keyword::Types: {
      const bool list = value.is_array() && !value.empty();
      if (!(list ? std::all_of(value.begin(), value.end(), type_named) : type_named(value) != 0))
        return must_be("null, boolean, object, array, string, integer or number, or a list of them");
      break;
    }
    case Keyword::Values:
      if (!value.is_array()) return must_be("a list of values");
      break;
  }
  return Done{};
}

// Paths have the form of $ref.
const Json* SchemaReader::referred(const Json& schema) const {
  const Json* ref = field(schema, "$ref");
  if (!ref) return nullptr;
  const auto known = places_.find(ref->get_ref<const std::string&>());
  return known == places_.end() ? nullptr : schemas_[known->second].schema;
}

uint8_t SchemaReader::types(const Json& schema) {
  if (schema.is_boolean()) return schema.get<bool>() ? kAnyType : 0;
  const Json* type = field(schema, "type");
  if (!type) return kAnyType;
  if (!type->is_array()) return type_named(*type);
  uint8_t all = 0;
  for (const Json& t : *type) all |= type_named(t);
  return all;
}

uint8_t SchemaReader::types_spoken_of(const Json& schema) {
  uint8_t all = 0;
  if (schema.is_object())
    for (const auto& [keyword, value] : schema.items())
      if (const Keyword* k = keyword_named(keyword)) all |= k->of;
  return all;
}

void SchemaReader::read(const Json& schema, NumberBounds& bounds) {
  if (const Json* v = field(schema, "minimum")) bounds.at_least(Decimal::of(v->dump()), false);
  if (const Json* v = field(schema, "maximum")) bounds.at_most(Decimal::of(v->dump()), false);
  if (const Json* v = field(schema, "exclusiveMinimum")) bounds.at_least(Decimal::of(v->dump()), true);
  if (const Json* v = field(schema, "exclusiveMaximum")) bounds.at_most(Decimal::of(v->dump()), true);
}

void SchemaReader::read(const Json& schema, StringRules& rules) {
  if (const Json* v = field(schema, "minLength")) rules.min = std::max(rules.min, count_of(*v));
  if (const Json* v = field(schema, "maxLength")) rules.max = std::min(rules.max, count_of(*v));
  if (const Json* v = field(schema, "pattern")) rules.patterns.push_back(v->get<std::string>());
  if (const Json* v = field(schema, "format"))
    rules.patterns.push_back(pattern_of_format(v->get_ref<const std::string&>()));
}

Result<bool> SchemaReader::holds(const Json& value, const Json& schema, const Json* known, int depth) const {
  if (depth > kMaxNested) return error(schema, "it refers to itself without an end", "");
  if (++work_ > kMaxWork) return error(schema, "it takes too many comparisons of constants", "list fewer");
  if (!(type_of(value) & types(schema))) return false;
  if (schema.is_boolean()) return true;
  if (const Json* v = field(schema, "const"); v && v != known && *v != value) return false;
  if (const Json* v = field(schema, "enum");
      v && v != known && std::find(v->begin(), v->end(), value) == v->end())
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
  for (const std::string& p : rules.patterns) {
    auto known =
        std::find_if(patterns_.begin(), patterns_.end(), [&](const auto& k) { return k.first == p; });
    if (known == patterns_.end()) {
      auto machine = CharMachine::pattern(p);
      if (!machine) return error(schema, machine.error().message, machine.error().remedy);
      work_ += 100 * machine->states().size();
      known = patterns_.emplace(known, p, *std::move(machine));
    }
    if (!known->second.matches(text)) return false;
  }
  return true;
}

Result<bool> SchemaReader::array_holds(const Json& value, const Json& schema, int depth) const {
  if (const Json* v = field(schema, "minItems"); v && value.size() < count_of(*v)) return false;
  if (const Json* v = field(schema, "maxItems"); v && value.size() > count_of(*v)) return false;
  const Json *prefix = field(schema, "prefixItems"), *items = field(schema, "items");
  for (size_t i = 0; i < value.size(); i++) {
    const Json* of = prefix && i < prefix->size() ? &(*prefix)[i] : items;
    auto ok = of ? holds(value[i], *of, nullptr, depth + 1) : Result<bool>(true);
    if (!ok || !*ok) return ok;
  }
  return true;
}

Result<bool> SchemaReader::object_holds(const Json& value, const Json& schema, int depth) const {
  if (const Json* v = field(schema, "required"))
    for (const Json& name : *v)
      if (!value.contains(name.get_ref<const std::string&>())) return false;
  const Json *properties = field(schema, "properties"), *others = field(schema, "additionalProperties");
  for (const auto& [name, item] : value.items()) {
    const Json* of = properties && properties->contains(name) ? &(*properties)[name] : others;
    auto ok = of ? holds(item, *of, nullptr, depth + 1) : Result<bool>(true);
    if (!ok || !*ok) return ok;
  }
  return true;
}

}  // namespace gimbal
