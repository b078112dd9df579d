#include "grammar/schema_check.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"

namespace gimbal {
namespace {

constexpr int kMaxNested = 200;
constexpr size_t kMaxSchemas = 200'000;
constexpr double kExactWhole = 9007199254740992;  // 2^53

struct Type {
  const char* name;
  uint8_t bits;
};
constexpr Type kTypes[] = {{"null", kNull},     {"boolean", kBoolean}, {"object", kObject}, {"array", kArray},
                           {"string", kString}, {"integer", kInteger}, {"number", kNumber}};
// Of schemas that the reader makes itself: a number that is not whole.
constexpr Type kFractionType = {"!fraction", kFraction};

uint8_t type_named(const Json& name) {
  for (const Type& t : kTypes)
    if (name.is_string() && name.get_ref<const std::string&>() == t.name) return t.bits;
  return name == kFractionType.name ? kFraction : 0;
}

bool is_property_name(const Json& v) { return v.is_string(); }

// Whether JSON's usual readers have rounded the number, as they do with whole numbers of more than 64 bits.
bool rounded(const Json& v) {
  if (v.is_structured()) return std::any_of(v.begin(), v.end(), rounded);
  if (!v.is_number_float() || std::abs(v.get<double>()) < kExactWhole) return false;
  const Decimal d = Decimal::of(v.dump());
  return d.whole_number() && d.whole.find_last_not_of('0') >= 15;
}

bool is_count(const Json& v) {
  if (v.is_number_float())
    return v.get<double>() >= 0 && v.get<double>() < 4e9 && v.get<double>() == std::floor(v.get<double>());
  return v.is_number_unsigned() || (v.is_number_integer() && v.get<int64_t>() >= 0);
}

// The parts of a $ref may be written as in a URL, %25 for a percent sign.
std::string decoded(const std::string& ref) {
  auto hex = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < ref.size(); i++)
    if (ref[i] == '%' && i + 2 < ref.size() && hex(ref[i + 1]) >= 0 && hex(ref[i + 2]) >= 0)
      out += char(hex(ref[i + 1]) * 16 + hex(ref[i + 2])), i += 2;
    else out += ref[i];
  return out;
}

}  // namespace

std::string escaped_key(std::string key) {
  for (size_t i = 0; i < key.size(); i++)
    if (key[i] == '~' || key[i] == '/') key.replace(i, 1, key[i] == '~' ? "~0" : "~1"), i++;
  return key;
}

uint32_t count_of(const Json& v) {
  return v.is_number_float() ? uint32_t(v.get<double>())
                             : uint32_t(std::min<uint64_t>(v.get<uint64_t>(), kUnbounded));
}

Json names_of(uint8_t types) {
  Json names = Json::array();
  for (const Type& t : kTypes)
    if ((types & t.bits) == t.bits && !(t.bits == kInteger && (types & kFraction))) names.push_back(t.name);
  if ((types & kNumber) == kFraction) names.push_back(kFractionType.name);
  return names;
}

const Json* field(const Json& schema, const std::string& name) {
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

void SchemaReader::add(const Json& schema, std::string place) {
  numbers_[&schema] = places_[place] = uint32_t(schemas_.size());
  schemas_.push_back({&schema, std::move(place)});
}

Status SchemaReader::check(const Json& schema, std::string place, int depth) {
  add(schema, place);
  if (schema.is_boolean()) return Done{};
  if (!schema.is_object()) return error(schema, "a schema is an object or a boolean", "");
  if (depth > kMaxNested)
    return error(schema, format("more than {} schemas in each other", kMaxNested), "use $defs");
  if (schemas_.size() > kMaxSchemas) return error(schema, "it is too large", "write a smaller one");
  return check_keywords(schema, place, depth);
}

Status SchemaReader::check_keywords(const Json& schema, const std::string& place, int depth) {
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

Status SchemaReader::check_map(const Json& map, const std::string& place, int depth) {
  for (const auto& [name, s] : map.items()) {
    if (s.is_array() && std::all_of(s.begin(), s.end(), is_property_name)) continue;  // of dependent names
    if (Status ok = check(s, format("{}/{}", place, escaped_key(name)), depth + 1); !ok) return ok;
  }
  return Done{};
}

Status SchemaReader::check_keyword(const Json& schema, const std::string& keyword, const Json& value,
                                   const std::string& place, int depth) {
  const SchemaKeyword* k = schema_keyword(keyword);
  if (!k && making_) return Done{};
  // A keyword without effect is allowed.
  if (!k && keyword.starts_with("unevaluated") && (value == true || value == Json::object())) return Done{};
  if (!k)
    return error(schema, format("the keyword {} is not supported", gimbal::quoted(keyword)),
                 "leave it out, or write the schema without it");
  auto must_be = [&](const char* what) {
    return error(schema, format("'{}' must be {}", keyword, what), "");
  };
  auto exact = [&]() -> Status {
    if (!rounded(value)) return Done{};
    return error(schema, format("'{}' has a number that JSON's readers round, {}", keyword, value.dump()),
                 "write whole numbers of at most 64 bits, or with at most 15 digits that are not 0");
  };
  const std::string below = format("{}/{}", place, keyword);
  switch (k->kind) {
    case SchemaKeyword::Note: break;
    case SchemaKeyword::Any: return exact();
    case SchemaKeyword::Schema: return check(value, below, depth + 1);
    case SchemaKeyword::Items:
      if (value.is_array()) return check_list(value, below, depth);
      return check(value, below, depth + 1);
    case SchemaKeyword::List:
      if (!value.is_array() || value.empty()) return must_be("a list of schemas that is not empty");
      return check_list(value, below, depth);
    case SchemaKeyword::Schemas:
      if (!value.is_array()) return must_be("a list of schemas");
      return check_list(value, below, depth);
    case SchemaKeyword::Map:
      if (!value.is_object() ||
          std::any_of(value.begin(), value.end(), [](const Json& s) { return s.is_array(); }))
        return must_be("an object of schemas");
      return check_map(value, below, depth);
    case SchemaKeyword::Depends:
      if (!value.is_object()) return must_be("an object of schemas or lists of names");
      return check_map(value, below, depth);
    case SchemaKeyword::Count:
      if (!is_count(value)) return must_be("a whole number of 0 or more");
      break;
    case SchemaKeyword::Bound:
      // Drafts before 6, and OpenAPI 3.0, say whether the bound beside it is excluded.
      if (value.is_boolean() && keyword.starts_with("exclusive")) break;
      if (!value.is_number()) return must_be("a number");
      return exact();
    case SchemaKeyword::Factor:
      if (!value.is_number() || value.get<double>() <= 0) return must_be("a number above 0");
      if (!multiple_of(Decimal(), Decimal::of(value.dump()))) return must_be("a number of at most 18 digits");
      return exact();
    case SchemaKeyword::Flag:
      if (!value.is_boolean()) return must_be("true or false");
      break;
    case SchemaKeyword::Text:
      if (!value.is_string()) return must_be("a text");
      break;
    case SchemaKeyword::Names:
      if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_property_name))
        return must_be("a list of names");
      break;
    case SchemaKeyword::Types: {
      const bool list = value.is_array() && !value.empty();
      if (!(list ? std::all_of(value.begin(), value.end(), type_named) : type_named(value) != 0) ||
          (!making_ && (value == kFractionType.name ||
                        (list && std::find(value.begin(), value.end(), kFractionType.name) != value.end()))))
        return must_be("null, boolean, object, array, string, integer or number, or a list of them");
      break;
    }
    case SchemaKeyword::Values:
      if (!value.is_array()) return must_be("a list of values");
      return exact();
  }
  return Done{};
}

// Paths have the form of $ref.
const Json* SchemaReader::referred(const Json& schema) const {
  const Json* ref = field(schema, "$ref");
  if (!ref) return nullptr;
  auto known = places_.find(ref->get_ref<const std::string&>());
  if (known == places_.end()) known = places_.find(decoded(ref->get_ref<const std::string&>()));
  return known == places_.end() ? nullptr : schemas_[known->second].schema;
}

uint8_t SchemaReader::types(const Json& schema) {
  if (schema.is_boolean()) return schema.get<bool>() ? kAnyType : 0;
  const Json* type = field(schema, "type");
  if (!type) return kAnyType;
  const Json* nullable = field(schema, "nullable");  // of OpenAPI 3.0
  uint8_t all = nullable && *nullable == true ? kNull : 0;
  if (!type->is_array()) return all | type_named(*type);
  for (const Json& t : *type) all |= type_named(t);
  return all;
}

uint8_t SchemaReader::types_spoken_of(const Json& schema) {
  uint8_t all = 0;
  if (schema.is_object())
    for (const auto& [keyword, value] : schema.items())
      if (const SchemaKeyword* k = schema_keyword(keyword))
        if (keyword != "format" || pattern_of_format(value.get_ref<const std::string&>())) all |= k->of;
  return all;
}

void SchemaReader::read(const Json& schema, NumberBounds& bounds) {
  auto excluded = [&](const char* name) {
    const Json* v = field(schema, name);
    return v && *v == true;
  };
  auto number = [&](const char* name) -> const Json* {
    const Json* v = field(schema, name);
    return v && v->is_number() ? v : nullptr;
  };
  if (const Json* v = number("minimum"))
    bounds.at_least(Decimal::of(v->dump()), excluded("exclusiveMinimum"));
  if (const Json* v = number("maximum")) bounds.at_most(Decimal::of(v->dump()), excluded("exclusiveMaximum"));
  if (const Json* v = number("exclusiveMinimum")) bounds.at_least(Decimal::of(v->dump()), true);
  if (const Json* v = number("exclusiveMaximum")) bounds.at_most(Decimal::of(v->dump()), true);
  if (const Json* v = number("multipleOf")) bounds.factors.push_back(Decimal::of(v->dump()));
}

void SchemaReader::read(const Json& schema, StringRules& rules) {
  if (const Json* v = field(schema, "minLength")) rules.min = std::max(rules.min, count_of(*v));
  if (const Json* v = field(schema, "maxLength")) rules.max = std::min(rules.max, count_of(*v));
  if (const Json* v = field(schema, "pattern")) rules.patterns.push_back(v->get<std::string>());
  if (const Json* v = field(schema, "format"))
    if (const char* pattern = pattern_of_format(v->get_ref<const std::string&>()))
      rules.patterns.push_back(pattern);
  if (const Json* v = field(schema, kOtherPatterns))
    for (const Json& p : *v) rules.other_patterns.push_back(p.get<std::string>());
  if (const Json* v = field(schema, kOtherTexts))
    for (const Json& t : *v) rules.other_texts.push_back(t.get<std::string>());
}

const Json* SchemaReader::first_items(const Json& schema) {
  if (const Json* first = field(schema, "prefixItems")) return first;
  const Json* items = field(schema, "items");
  return items && items->is_array() ? items : nullptr;
}

const Json* SchemaReader::other_items(const Json& schema) {
  const Json* items = field(schema, "items");
  return items && items->is_array() ? field(schema, "additionalItems") : items;
}

}  // namespace gimbal
