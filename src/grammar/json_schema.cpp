#include "grammar/grammar.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "grammar/decimal.h"
#include "grammar/schema_compiler.h"

namespace gimbal {
namespace {

constexpr size_t kMaxSchemaBytes = 1 << 20;
constexpr size_t kMaxDepth = 200;
constexpr size_t kMaxMembers = 4'000;
constexpr size_t kMaxRules = 20'000;
constexpr size_t kMaxReferences = 500;  // in a row
constexpr size_t kMaxMachineStates = 3'000'000;
constexpr uint32_t kDoubleLength = 16;  // of 15 digits and a point
constexpr size_t kMaxOpposites = 500;   // pairs of alternatives of oneOf

bool lists_values(const Json& schema) { return field(schema, "enum") || field(schema, "const"); }

// Reasons for slow parsing: deep nesting, and large objects, whose members are each compared with all earlier
// ones. Empty: none.
std::string_view burden(std::string_view text) {
  std::vector<size_t> members{0};  // per open object or array
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string && c == '\\') i++;
    else if (c == '"') in_string = !in_string;
    else if (in_string) continue;
    else if (c == '[' || c == '{') members.push_back(0);
    else if ((c == ']' || c == '}') && members.size() > 1) members.pop_back();
    else if (c == ':' && ++members.back() > kMaxMembers) return "an object of it has too many members";
    if (members.size() > 2 * kMaxDepth) return "it is nested too deeply";
  }
  return {};
}

// A number of the text that JSON's reader does not keep exactly; empty: none.
std::string_view rounded_number(std::string_view text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string && c == '\\') i++;
    else if (c == '"') in_string = !in_string;
    if (in_string || !(c == '-' || (c >= '0' && c <= '9'))) continue;
    const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", i), text.size());
    const std::string_view number = text.substr(i, end - i);
    if (number.size() > 15)
      if (const Json read = parse_json(number);
          read.is_number() && compare(Decimal::of(number), Decimal::of(read.dump())) != 0)
        return number;
    i = end - 1;
  }
  return {};
}

}  // namespace

bool SchemaCompiler::spend(size_t states, const Json& schema) {
  if ((spent_ += states) <= kMaxMachineStates) return true;
  fail(schema, "its patterns, keys and numbers are too large together", "use fewer and smaller ones");
  return false;
}

Result<Grammar> SchemaCompiler::compile() {
  if (Status ok = reader_.check(); !ok) return ok.error();
  rule_of({{&root_}});
  for (uint32_t i = 0; i < known_.size() && !error_; i++) {
    Conjunction conjunction;
    for (uint32_t n : known_[i]) conjunction.push_back({&reader_.schema(n / 4), (n & 2) != 0, (n & 1) != 0});
    g_.define(rules_[i], expression(conjunction));
    if (known_.size() > kMaxRules || g_.too_large())
      fail(root_, "it is too large", "use fewer alternatives that hold together, and smaller patterns");
  }
  if (error_) return *error_;
  return std::move(g_);
}

// The rule for values that satisfy all of these; defined later.
Grammar::Id SchemaCompiler::rule_of(const Conjunction& c) {
  std::vector<uint32_t> numbers;
  for (const Part& p : c)
    numbers.push_back(reader_.number(*p.schema) * 4 + p.any_of_done * 2 + p.one_of_done);
  std::sort(numbers.begin(), numbers.end());
  const uint32_t n = known_.number(numbers);
  if (n == rules_.size()) rules_.push_back(g_.add_rule("a schema"));
  return g_.rule(rules_[n]);
}

Grammar::Id SchemaCompiler::value_of(const Schemas& schemas) {
  Conjunction c;
  for (const Json* s : schemas)
    if (!(s->is_boolean() && s->get<bool>()) && !(s->is_object() && s->empty())) c.push_back({s});
  return c.empty() ? json_.value() : rule_of(c);
}

bool SchemaCompiler::has(const Conjunction& all, const Json* schema) {
  return std::any_of(all.begin(), all.end(), [&](const Part& p) { return p.schema == schema; });
}

// Adds a schema and, through $ref, allOf and implied schemas, those that apply to the same value. False:
// infinite recursion, or so many references that it is likely, so no finite value satisfies it.
bool SchemaCompiler::add(Conjunction& all, const Json& schema, Schemas& above) {
  if (std::find(above.begin(), above.end(), &schema) != above.end() || above.size() == kMaxReferences)
    return false;
  if (has(all, &schema)) return true;
  all.push_back({&schema});
  return add_what_it_names(all, schema, above);
}

bool SchemaCompiler::add_what_it_names(Conjunction& all, const Json& schema, Schemas& above) {
  above.push_back(&schema);
  const Json* to = reader_.referred(schema);
  bool ends = !to || add(all, *to, above);
  if (const Json* list = field(schema, "allOf"))
    for (const Json& s : *list) ends = ends && add(all, s, above);
  const auto implied = reader_.implied(schema);
  if (!implied) fail(implied.error());
  else if (*implied) ends = ends && add(all, **implied, above);
  above.pop_back();
  return ends;
}

Grammar::Id SchemaCompiler::expression(const Conjunction& conjunction) {
  Conjunction all = conjunction;
  for (const Part& p : conjunction)
    if (Schemas above; !add_what_it_names(all, *p.schema, above))
      return fail(*p.schema, "it refers to itself without an end", "put something around $ref");
  for (const Part& p : all)
    for (const char* name : {"enum", "const"})
      if (const Json* values = field(*p.schema, name)) return constants(*values, *name == 'e', all);
  for (size_t i = 0; i < all.size(); i++) {
    if (const Json* list = field(*all[i].schema, "anyOf"); list && !all[i].any_of_done)
      return split(all, i, *list, false);
    if (const Json* list = field(*all[i].schema, "oneOf"); list && !all[i].one_of_done)
      return split(all, i, *list, true);
  }
  return by_type(all);
}

Grammar::Id SchemaCompiler::constants(const Json& values, bool list, const Conjunction& all) {
  std::vector<Id> texts;
  auto add_value = [&](const Json& value) {
    for (const Part& p : all) {
      const auto ok = reader_.holds(value, *p.schema, &values);
      if (!ok) return void(fail(ok.error()));
      if (!*ok) return;
    }
    texts.push_back(g_.text(value.dump()));
  };
  if (!list) add_value(values);
  else
    for (const Json& v : values) add_value(v);
  return g_.choice(texts);
}

// An alternative of oneOf that may hold together with others also satisfies their opposites.
Grammar::Id SchemaCompiler::split(Conjunction all, size_t at, const Json& list, bool one) {
  std::vector<Schemas> opposites(list.size());
  for (size_t i = 0; one && i < list.size() && !error_; i++)
    for (size_t j = 0; j < i; j++) {
      // Lists of constants are compared with the whole schema, value by value.
      if ((lists_values(list[i]) && lists_values(list[j])) || disjoint(list[i], list[j], &all, 0)) continue;
      const auto no_i = reader_.opposite_schema(list[i]), no_j = reader_.opposite_schema(list[j]);
      if (!no_i || !no_j || ++compared_with_opposites_ > kMaxOpposites)
        return fail(
            *all[at].schema,
            format("oneOf: a value may fulfil the alternatives {} and {} at once, as far as can be told", j,
                   i),
            "use anyOf, or give both a property with different constants");
      opposites[i].push_back(*no_j), opposites[j].push_back(*no_i);
    }
  (one ? all[at].one_of_done : all[at].any_of_done) = true;
  const Json* chooser = all[at].schema;
  std::vector<Id> ways;
  for (size_t i = 0; i < list.size(); i++) {
    Conjunction way;
    Schemas above;
    // An alternative that refers back to its own choice for the same value never ends.
    if (!add(way, list[i], above) || has(way, chooser)) continue;
    bool ends = true;
    for (const Json* s : opposites[i]) ends = ends && add(way, *s, above);
    if (!ends) continue;
    Conjunction with = all;
    for (const Part& p : way)
      if (!has(with, p.schema)) with.push_back(p);
    ways.push_back(rule_of(with));
  }
  return g_.choice(ways);
}

// ---- types

uint8_t SchemaCompiler::strict_types_of(const Conjunction& all) {
  uint8_t types = kAnyType;
  for (const Part& p : all) types &= SchemaReader::types(*p.schema);
  return types;
}

// If no schema names a type, the types that its keywords apply to.
uint8_t SchemaCompiler::types_of(const Conjunction& all) {
  const uint8_t types = strict_types_of(all);
  uint8_t spoken_of = 0;
  for (const Part& p : all) spoken_of |= SchemaReader::types_spoken_of(*p.schema);
  return types == kAnyType && spoken_of ? spoken_of : types;
}

NumberBounds SchemaCompiler::bounds_of(const Conjunction& all) {
  NumberBounds bounds;
  for (const Part& p : all) SchemaReader::read(*p.schema, bounds);
  return bounds;
}

StringRules SchemaCompiler::strings_of(const Conjunction& all) {
  StringRules rules;
  for (const Part& p : all) SchemaReader::read(*p.schema, rules);
  return rules;
}

Grammar::Id SchemaCompiler::by_type(const Conjunction& all) {
  const uint8_t types = types_of(all);
  if (types == kAnyType) return json_.value();
  std::vector<Id> ways;
  if (types & kObject) ways.push_back(object(all));
  if (types & kArray) ways.push_back(array(all));
  if (types & kString) ways.push_back(string(all));
  if (types & kNumber) ways.push_back(numbers(all, types));
  if (types & kBoolean) ways.push_back(g_.choice({g_.text("true"), g_.text("false")}));
  if (types & kNull) ways.push_back(g_.text("null"));
  return g_.choice(ways);
}

Grammar::Id SchemaCompiler::numbers(const Conjunction& all, uint8_t types) {
  const NumberBounds bounds = bounds_of(all);
  const bool whole = !(types & kFraction);
  if (bounds.factors.empty() && (types & kInteger))
    return bounds.bounded() ? bounded_numbers(g_, bounds, whole) : json_.number(whole);
  Grammar scratch;
  const Id plain = bounded_numbers(scratch, bounds, whole);
  auto texts = CharMachine::of(scratch, plain);
  auto narrow = [&](const Result<CharMachine>& with) {
    if (texts) texts = with ? texts->both(*with) : with;
  };
  bool fractions = !(types & kInteger);
  for (const Decimal& factor : bounds.factors) fractions |= !factor.whole_number();
  // More digits would be lost in a double, and with them what makes the number fit.
  if (texts && fractions) texts = texts->of_length(0, kDoubleLength);
  if (!(types & kInteger)) narrow(CharMachine::pattern("\\.\\d*[1-9]\\d*$"));
  for (const Decimal& factor : bounds.factors) {
    const std::string name = factor.whole + "." + factor.part;
    auto known = multiples_.find(name);
    if (known == multiples_.end()) {
      auto made = multiples_of(factor);
      if (!made) return fail(*all.front().schema, made.error().message, made.error().remedy);
      if (!spend(*digits_of(factor) * (factor.part.size() + 1), *all.front().schema)) return g_.never();
      known = multiples_.emplace(name, *std::move(made)).first;
    }
    narrow(known->second);
    if (texts && !spend(texts->states().size(), *all.front().schema)) return g_.never();
  }
  if (!texts) return fail(*all.front().schema, texts.error().message, texts.error().remedy);
  return text_of(g_, *texts);
}

Grammar::Id SchemaCompiler::string(const Conjunction& all) {
  const StringRules rules = strings_of(all);
  if (rules.min > rules.max) return g_.never();
  if (rules.plain()) return json_.quoted(g_.repeat(json_.string_char(), rules.min, rules.max));
  const auto machine = rules.machine();
  if (!machine) return fail(*all.front().schema, machine.error().message, machine.error().remedy);
  if (!spend(100 + machine->states().size(), *all.front().schema)) return g_.never();
  return string_of(g_, *machine);
}

Result<Grammar> json_schema_grammar(std::string_view schema) {
  auto error = [](std::string what, std::string_view remedy) {
    return Error{Code::Usage, "JSON schema: " + what, remedy, "", "json_schema"};
  };
  if (schema.size() > kMaxSchemaBytes)
    return error(format("it has {} bytes, at most {} are allowed", schema.size(), kMaxSchemaBytes), "");
  if (const auto why = burden(schema); !why.empty()) return error(std::string(why), "write a smaller one");
  if (const auto number = rounded_number(schema); !number.empty())
    return error(format("the number {} has more digits than are kept", number),
                 "write whole numbers of at most 64 bits, and others with at most 15 digits");
  const Json root = parse_json(schema);
  if (root.is_discarded()) return error(format("{} is no JSON", gimbal::quoted(schema)), "");
  return SchemaCompiler(root).compile();
}

Grammar json_object_grammar() {
  Grammar g;
  const uint32_t root = g.add_rule("object");
  g.define(root, JsonRules(g).any_object());
  return g;
}

}  // namespace gimbal
