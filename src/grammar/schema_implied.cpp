// Rewrites `not`, `if` and the dependent keywords of a schema as `anyOf` and `allOf`. The
// opposite of a schema has the place of the schema with a ! before it, and refers to its parts by their
// places: nothing is copied, and a schema that contains itself has an opposite that contains itself.
#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "grammar/schema_check.h"
#include "grammar/schema_keywords.h"

namespace gimbal {
namespace {

constexpr std::string_view kExactFormats[] = {"date", "uuid", "ipv4", "ipv6", "uri"};
constexpr size_t kMaxChoices = 40;  // of a oneOf, whose opposite compares each with each

Json to_place(const std::string& place) { return {{"$ref", place}}; }

// A type, and a rule that only its values can break.
Json of_type(const char* type, const char* keyword, Json value) {
  return {{"type", type}, {keyword, std::move(value)}};
}

Json in_list(const char* keyword, std::initializer_list<Json> schemas) {
  Json list = Json::array();
  for (const Json& s : schemas) list.push_back(s);
  return {{keyword, list}};
}

bool is_any(const Json& schema) { return schema == true || schema == Json::object(); }

}  // namespace

// A place for a schema that is still to be written, so that its own parts can refer to it.
Json& SchemaReader::adopt(const std::string& place, const Json& origin) {
  Json& made = made_.emplace_back(origin);
  add(made, place);
  return made;
}

Status SchemaReader::finish(Json& made, Json content) {
  made = std::move(content);
  if (!made.is_object()) return Done{};
  making_ = true;
  // Its parts have places of their own: those with ! are the opposites of others.
  const std::string place = "=" + schemas_[numbers_.at(&made)].place;
  Status ok = check_keywords(made, place, 0);
  making_ = false;
  return ok;
}

Result<const Json*> SchemaReader::implied(const Json& schema) {
  if (!schema.is_object()) return nullptr;
  if (const auto known = implied_.find(&schema); known != implied_.end()) return known->second;
  const std::string place = schemas_[numbers_.at(&schema)].place;
  Json all = Json::array();
  if (field(schema, "not")) {
    auto made = opposite(place + "/not");
    if (!made) return made.error();
    all.push_back(*made);
  }
  if (field(schema, "if") && (field(schema, "then") || field(schema, "else"))) {
    auto no = opposite(place + "/if");
    if (!no) return no.error();
    auto way = [&](const Json& condition, const char* name) {
      return field(schema, name) ? in_list("allOf", {condition, to_place(place + "/" + name)}) : condition;
    };
    all.push_back(in_list("anyOf", {way(to_place(place + "/if"), "then"), way(*no, "else")}));
  }
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"})
    if (const Json* depends = field(schema, keyword))
      for (const auto& [name, what] : depends->items()) {
        const Json without = {{"properties", {{name, false}}}};
        const Json needed = what.is_array() ? Json{{"required", what}}
                                            : to_place(format("{}/{}/{}", place, keyword, escaped_key(name)));
        all.push_back(
            in_list("anyOf", {without, in_list("allOf", {Json{{"required", Json::array({name})}}, needed})}));
      }
  const Json* result = nullptr;
  if (!all.empty()) {
    Json& made = adopt("?" + place, Json::object());
    if (Status ok = finish(made, {{"allOf", all}}); !ok) return ok.error();
    result = &made;
  }
  implied_[&schema] = result;
  return result;
}

const Json& SchemaReader::never() { return never_ ? *never_ : *(never_ = &adopt("!", false)); }

Result<const Json*> SchemaReader::opposite_schema(const Json& schema) {
  const auto made = opposite(schemas_[numbers_.at(&schema)].place);
  if (!made) return made.error();
  return referred(*made);
}

// The opposite of the schema at a place, as a schema that refers to it.
Result<Json> SchemaReader::opposite(std::string place) {
  if (place.starts_with('!')) return to_place(place.substr(1));
  const std::string name = "!" + place;
  if (places_.contains(name)) return to_place(name);
  const Json& schema = *schemas_[places_.at(place)].schema;
  Json& made = adopt(name, schema);
  auto content = opposite_of(schema, place);
  if (!content) return content;
  if (Status ok = finish(made, *std::move(content)); !ok) return ok.error();
  return to_place(name);
}

Result<Json> SchemaReader::opposite_of(const Json& schema, const std::string& place) {
  if (schema.is_boolean()) return Json(!schema.get<bool>());
  Json ways = Json::array();
  if (const uint8_t others = kAnyType & ~types(schema); others) ways.push_back({{"type", names_of(others)}});
  for (const auto& [keyword, value] : schema.items())
    if (Status ok = opposites_of_keyword(schema, keyword, place, ways); !ok) return ok.error();
  return ways.empty() ? Json(false) : Json{{"anyOf", ways}};
}

// The ways to break one keyword.
Status SchemaReader::opposites_of_keyword(const Json& schema, const std::string& keyword,
                                          const std::string& place, Json& ways) {
  const Json& value = *field(schema, keyword);
  const std::string below = place + "/" + keyword;
  std::optional<Error> failed;
  auto no = [&](const std::string& at) -> Json {
    auto made = opposite(at);
    if (made) return *made;
    if (!failed) failed = made.error();
    return false;
  };
  auto list_of_no = [&] {
    Json list = Json::array();
    for (size_t i = 0; i < value.size(); i++) list.push_back(no(format("{}/{}", below, i)));
    return list;
  };
  auto count = [&](const char* type, const char* least, const char* most, bool was_least) {
    const uint32_t n = count_of(value);
    if (!was_least && n < kUnbounded) ways.push_back(of_type(type, least, n + 1));
    if (was_least && n > 0) ways.push_back(of_type(type, most, n - 1));
  };
  auto bound = [&](const char* opposite) { ways.push_back(of_type("number", opposite, value)); };
  const SchemaKeyword* k = schema_keyword(keyword);
  if (k && (k->kind == SchemaKeyword::Note || (k->kind == SchemaKeyword::Map && keyword[0] != 'p')))
    return Done{};
  if (keyword == "type" || keyword == "nullable" || keyword == "then" || keyword == "else" ||
      keyword == "minContains" || keyword == "maxContains")
    return Done{};  // said with the keyword that they belong to
  if (keyword == "enum") return opposite_of_values(schema, value, ways);
  if (keyword == "const") return opposite_of_values(schema, Json::array({value}), ways);
  if (keyword == "$ref") {
    ways.push_back(no(schemas_[numbers_.at(referred(schema))].place));
  } else if (keyword == "not") {
    ways.push_back(to_place(below));
  } else if (keyword == "allOf") {
    for (const Json& s : list_of_no()) ways.push_back(s);
  } else if (keyword == "anyOf") {
    ways.push_back({{"allOf", list_of_no()}});
  } else if (keyword == "oneOf" && value.size() <= kMaxChoices) {
    ways.push_back({{"allOf", list_of_no()}});
    for (size_t i = 0; i < value.size(); i++)
      for (size_t j = 0; j < i; j++)
        ways.push_back(
            in_list("allOf", {to_place(format("{}/{}", below, i)), to_place(format("{}/{}", below, j))}));
  } else if (keyword == "if") {
    if (field(schema, "then")) ways.push_back(in_list("allOf", {to_place(below), no(place + "/then")}));
    if (field(schema, "else")) ways.push_back(in_list("allOf", {no(below), no(place + "/else")}));
  } else if (keyword == "properties") {
    for (const auto& [name, s] : value.items())
      if (!is_any(s))
        ways.push_back({{"type", "object"},
                        {"required", Json::array({name})},
                        {"properties", {{name, no(below + "/" + escaped_key(name))}}}});
  } else if (keyword == "required") {
    for (const Json& name : value)
      ways.push_back(of_type("object", "properties", {{name.get<std::string>(), false}}));
  } else if (keyword == "minProperties" || keyword == "maxProperties") {
    count("object", "minProperties", "maxProperties", keyword[1] == 'i');
  } else if (keyword == "minItems" || keyword == "maxItems") {
    count("array", "minItems", "maxItems", keyword[1] == 'i');
  } else if (keyword == "minLength" || keyword == "maxLength") {
    count("string", "minLength", "maxLength", keyword[1] == 'i');
  } else if (keyword == "items" && value.is_object() && !field(schema, "prefixItems")) {
    if (!is_any(value)) ways.push_back(of_type("array", "contains", no(below)));
  } else if (keyword == "items" && value.is_boolean() && !field(schema, "prefixItems")) {
    if (!value.get<bool>()) ways.push_back(of_type("array", "minItems", 1));
  } else if (keyword == "contains" && !field(schema, "minContains") && !field(schema, "maxContains")) {
    ways.push_back(of_type("array", "items", no(below)));
  } else if (keyword == "minimum" && !field(schema, "exclusiveMinimum")) {
    bound("exclusiveMaximum");
  } else if (keyword == "maximum" && !field(schema, "exclusiveMaximum")) {
    bound("exclusiveMinimum");
  } else if (keyword == "exclusiveMinimum" && value.is_number()) {
    bound("maximum");
  } else if (keyword == "exclusiveMaximum" && value.is_number()) {
    bound("minimum");
  } else if (keyword == "pattern") {
    ways.push_back(of_type("string", kOtherPatterns, Json::array({value})));
  } else if (keyword == "format") {
    const auto& name = value.get_ref<const std::string&>();
    const char* pattern = pattern_of_format(name);
    // Other patterns leave out some texts of their format.
    if (pattern &&
        std::find(std::begin(kExactFormats), std::end(kExactFormats), name) == std::end(kExactFormats))
      return error(schema, format("the opposite of the format {} cannot be written as a grammar", name),
                   "use a 'pattern' within 'not' and 'if'");
    if (pattern) ways.push_back(of_type("string", kOtherPatterns, Json::array({pattern})));
  } else if (keyword.starts_with("additional") ? !is_any(value) : value != false) {
    return error(schema, format("the opposite of {} cannot be written as a grammar", gimbal::quoted(keyword)),
                 "write 'not' and 'if' with type, const, enum, required, properties, lengths and bounds");
  }
  if (failed) return *failed;
  return Done{};
}

// Every other value: of other types, other texts, and the numbers between those listed.
Status SchemaReader::opposite_of_values(const Json& schema, const Json& values, Json& ways) {
  uint8_t named = 0;
  Json texts = Json::array();
  bool truths[2] = {};
  std::vector<std::pair<Decimal, Json>> numbers;
  for (const Json& v : values) {
    if (v.is_null()) named |= kNull;
    if (v.is_boolean()) named |= kBoolean, truths[v.get<bool>()] = true;
    if (v.is_string()) named |= kString, texts.push_back(v);
    if (v.is_number()) named |= kNumber, numbers.emplace_back(Decimal::of(v.dump()), v);
    if (v.is_structured() && !v.empty())
      return error(schema, "the opposite of an object or a list of its values cannot be written as a grammar",
                   "name other values in 'not' and 'if'");
    if (v.is_object()) named |= kObject, ways.push_back(of_type("object", "minProperties", 1));
    if (v.is_array()) named |= kArray, ways.push_back(of_type("array", "minItems", 1));
  }
  if (const uint8_t others = kAnyType & ~named; others) ways.push_back({{"type", names_of(others)}});
  if (!texts.empty()) ways.push_back(of_type("string", kOtherTexts, texts));
  for (bool b : {false, true})
    if ((named & kBoolean) && !truths[b]) ways.push_back({{"const", b}});
  std::sort(numbers.begin(), numbers.end(),
            [](const auto& a, const auto& b) { return compare(a.first, b.first) < 0; });
  for (size_t i = 0; i <= numbers.size() && !numbers.empty(); i++) {
    Json between = {{"type", "number"}};
    if (i > 0) between["exclusiveMinimum"] = numbers[i - 1].second;
    if (i < numbers.size()) between["exclusiveMaximum"] = numbers[i].second;
    ways.push_back(between);
  }
  return Done{};
}

}  // namespace gimbal
