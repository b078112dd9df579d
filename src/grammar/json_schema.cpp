// A schema and all schemas that apply to the same value form a conjunction: a set of schemas that the value
// must satisfy together. Each conjunction becomes a rule, so recursive schemas become recursive rules. A
// choice (anyOf, oneOf) within a conjunction splits it.
#include "grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/interner.h"
#include "grammar/json_rules.h"
#include "grammar/schema_check.h"

namespace gimbal {
namespace {

constexpr size_t kMaxSchemaBytes = 1 << 20;
constexpr size_t kMaxDepth = 200;
constexpr size_t kMaxMembers = 4'000;
constexpr size_t kMaxRules = 20'000;
constexpr size_t kMaxReferences = 500;       // in a row
constexpr size_t kMaxComparisons = 200'000;  // of alternatives of oneOf

// A schema, and the choices already made in it.
struct Part {
  const Json* schema;
  bool any_of_done = false, one_of_done = false;
};
using Conjunction = std::vector<Part>;

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const Json& root) : root_(root), reader_(root), json_(g_) {}

  Result<Grammar> compile() {
    if (Status ok = reader_.check(); !ok) return ok.error();
    rule_of({{&root_}});
    for (uint32_t i = 0; i < known_.size() && !error_; i++) {
      Conjunction conjunction;
      for (uint32_t n : known_[i])
        conjunction.push_back({&reader_.schema(n / 4), (n & 2) != 0, (n & 1) != 0});
      g_.define(rules_[i], expression(conjunction));
      if (known_.size() > kMaxRules || g_.too_large())
        fail(root_, "it is too large", "use fewer alternatives that hold together, and smaller patterns");
    }
    if (error_) return *error_;
    return std::move(g_);
  }

 private:
  using Id = Grammar::Id;

  Id fail(Error e) {
    if (!error_) error_ = std::move(e);
    return g_.never();
  }
  Id fail(const Json& schema, std::string_view what, std::string_view remedy) {
    return fail(reader_.error(schema, what, remedy));
  }

  // The rule for values that satisfy all of these; defined later.
  Id rule_of(const Conjunction& c) {
    std::vector<uint32_t> numbers;
    for (const Part& p : c)
      numbers.push_back(reader_.number(*p.schema) * 4 + p.any_of_done * 2 + p.one_of_done);
    std::sort(numbers.begin(), numbers.end());
    const uint32_t n = known_.number(numbers);
    if (n == rules_.size()) rules_.push_back(g_.add_rule("a schema"));
    return g_.rule(rules_[n]);
  }
  Id value_of(const std::vector<const Json*>& schemas) {
    Conjunction c;
    for (const Json* s : schemas)
      if (!(s->is_boolean() && s->get<bool>()) && !(s->is_object() && s->empty())) c.push_back({s});
    return c.empty() ? json_.value() : rule_of(c);
  }

  static bool has(const Conjunction& all, const Json* schema) {
    return std::any_of(all.begin(), all.end(), [&](const Part& p) { return p.schema == schema; });
  }

  // Adds a schema and, through $ref and allOf, those that apply to the same value. False: infinite recursion,
  // or so many references that it is likely, so no finite value satisfies it.
  bool add(Conjunction& all, const Json& schema, std::vector<const Json*>& above) {
    if (std::find(above.begin(), above.end(), &schema) != above.end() || above.size() == kMaxReferences)
      return false;
    if (has(all, &schema)) return true;
    all.push_back({&schema});
    return add_what_it_names(all, schema, above);
  }
  bool add_what_it_names(Conjunction& all, const Json& schema, std::vector<const Json*>& above) {
    above.push_back(&schema);
    const Json* to = reader_.referred(schema);
    bool ends = !to || add(all, *to, above);
    if (const Json* list = field(schema, "allOf"))
      for (const Json& s : *list) ends = ends && add(all, s, above);
    above.pop_back();
    return ends;
  }

  Id expression(const Conjunction& conjunction) {
    Conjunction all = conjunction;
    for (const Part& p : conjunction)
      if (std::vector<const Json*> above; !add_what_it_names(all, *p.schema, above))
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

  // ---- constants and choices

  Id constants(const Json& values, bool list, const Conjunction& all) {
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

  Id split(Conjunction all, size_t at, const Json& list, bool one) {
    if (one)
      for (size_t i = 0; i < list.size(); i++)
        for (size_t j = 0; j < i; j++)
          // Lists of constants are compared with the whole schema, value by value.
          if (!(lists_values(list[i]) && lists_values(list[j])) && !disjoint(list[i], list[j], 0) && !error_)
            return fail(
                *all[at].schema,
                format("oneOf: a value may fulfil the alternatives {} and {} at once, as far as can be told",
                       j, i),
                "use anyOf, or give both a property with different constants");
    (one ? all[at].one_of_done : all[at].any_of_done) = true;
    const Json* chooser = all[at].schema;
    std::vector<Id> ways;
    for (const Json& s : list) {
      Conjunction way;
      std::vector<const Json*> above;
      // An alternative that refers back to its own choice for the same value never ends.
      if (!add(way, s, above) || has(way, chooser)) continue;
      Conjunction with = all;
      for (const Part& p : way)
        if (!has(with, p.schema)) with.push_back(p);
      ways.push_back(rule_of(with));
    }
    return g_.choice(ways);
  }

  static bool lists_values(const Json& schema) { return field(schema, "enum") || field(schema, "const"); }

  // Whether no value satisfies both; false if unknown.
  bool disjoint(const Json& a, const Json& b, int depth) {
    if (++comparisons_ > kMaxComparisons) return false;
    Conjunction x, y;
    std::vector<const Json*> above;
    if (!add(x, a, above) || !add(y, b, above)) return true;
    const uint8_t types = types_of(x) & types_of(y);
    if (!types) return true;
    if (constants_fail(x, b) || constants_fail(y, a)) return true;
    if (!(types & ~kNumber)) return bounds_of(x).disjoint(bounds_of(y));
    if (types == kString) {
      const StringRules s = strings_of(x), t = strings_of(y);
      return s.max < t.min || t.max < s.min;
    }
    if (types != kObject || depth > 8) return false;
    for (const Conjunction* from : {&x, &y})
      for (const Part& p : *from) {
        const Json* required = field(*p.schema, "required");
        if (!required) continue;
        for (const Json& name : *required)
          if (properties_disjoint(x, y, name.get_ref<const std::string&>(), depth)) return true;
      }
    return false;
  }

  // For a property required by one of them: whether the other forbids it, or requires disjoint values.
  bool properties_disjoint(const Conjunction& x, const Conjunction& y, const std::string& name, int depth) {
    const auto in_x = schemas_of(x, name), in_y = schemas_of(y, name);
    auto forbids = [](const std::vector<const Json*>& all) {
      return std::any_of(all.begin(), all.end(),
                         [](const Json* s) { return s->is_boolean() && !s->get<bool>(); });
    };
    if (forbids(in_x) || forbids(in_y)) return true;
    if (!requires_name(x, name) || !requires_name(y, name)) return false;
    for (const Json* s : in_x)
      for (const Json* t : in_y)
        if (disjoint(*s, *t, depth + 1)) return true;
    return false;
  }

  static bool requires_name(const Conjunction& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const Part& p) {
      const Json* r = field(*p.schema, "required");
      return r && std::find(r->begin(), r->end(), name) != r->end();
    });
  }

  // Whether `all` lists its values, and none of them satisfies `other`.
  bool constants_fail(const Conjunction& all, const Json& other) {
    for (const Part& p : all) {
      const Json *list = field(*p.schema, "enum"), *one = field(*p.schema, "const");
      if (!list && !one) continue;
      auto fails = [&](const Json& v) {
        const auto ok = reader_.holds(v, other);
        if (!ok) fail(ok.error());
        return !ok || !*ok;
      };
      if (one ? fails(*one) : std::all_of(list->begin(), list->end(), fails)) return true;
    }
    return false;
  }

  // ---- types

  // If no schema names a type, the types that its keywords apply to.
  static uint8_t types_of(const Conjunction& all) {
    uint8_t types = kAnyType, spoken_of = 0;
    for (const Part& p : all)
      types &= SchemaReader::types(*p.schema), spoken_of |= SchemaReader::types_spoken_of(*p.schema);
    return types == kAnyType && spoken_of ? spoken_of : types;
  }
  static NumberBounds bounds_of(const Conjunction& all) {
    NumberBounds bounds;
    for (const Part& p : all) SchemaReader::read(*p.schema, bounds);
    return bounds;
  }
  static StringRules strings_of(const Conjunction& all) {
    StringRules rules;
    for (const Part& p : all) SchemaReader::read(*p.schema, rules);
    return rules;
  }

  Id by_type(const Conjunction& all) {
    const uint8_t types = types_of(all);
    if (types == kAnyType) return json_.value();
    std::vector<Id> ways;
    if (types & kObject) ways.push_back(object(all));
    if (types & kArray) ways.push_back(array(all));
    if (types & kString) ways.push_back(string(all));
    if (types & kNumber) {
      const NumberBounds bounds = bounds_of(all);
      const bool whole = !(types & kFraction);
      ways.push_back(bounds.bounded() ? bounded_numbers(g_, bounds, whole) : json_.number(whole));
    }
    if (types & kBoolean) ways.push_back(g_.choice({g_.text("true"), g_.text("false")}));
    if (types & kNull) ways.push_back(g_.text("null"));
    return g_.choice(ways);
  }

  Id string(const Conjunction& all) {
    const StringRules rules = strings_of(all);
    if (rules.min > rules.max) return g_.never();
    if (rules.patterns.empty()) return json_.quoted(g_.repeat(json_.string_char(), rules.min, rules.max));
    const auto machine = rules.machine();
    if (!machine) return fail(*all.front().schema, machine.error().message, machine.error().remedy);
    return string_of(g_, *machine);
  }

  Id array(const Conjunction& all) {
    uint32_t min = 0, max = kUnbounded;
    size_t prefix = 0;
    for (const Part& p : all) {
      if (const Json* v = field(*p.schema, "minItems"))
        min = std::max(min, uint32_t(std::min<uint64_t>(v->get<uint64_t>(), kUnbounded)));
      if (const Json* v = field(*p.schema, "maxItems"))
        max = std::min(max, uint32_t(std::min<uint64_t>(v->get<uint64_t>(), kUnbounded)));
      if (const Json* v = field(*p.schema, "prefixItems")) prefix = std::max(prefix, v->size());
    }
    if (min > max) return g_.never();
    prefix = std::min<size_t>(prefix, max);
    auto item = [&](size_t i) {
      std::vector<const Json*> of;
      for (const Part& p : all) {
        const Json *first = field(*p.schema, "prefixItems"), *rest = field(*p.schema, "items");
        if (first && i < first->size()) of.push_back(&(*first)[i]);
        else if (rest) of.push_back(rest);
      }
      return value_of(of);
    };
    const Id rest = item(SIZE_MAX);
    if (prefix == 0) return json_.array_of(rest, min, max);
    // From the last of the prefix to the first: what follows so many items.
    auto left = [&](uint32_t n) { return n == kUnbounded ? n : n - uint32_t(std::min<size_t>(n, prefix)); };
    const Id end = g_.sequence({json_.space(), g_.text("]")});
    Id behind = g_.sequence({g_.repeat(g_.sequence({json_.comma(), rest}), left(min), left(max)), end});
    for (size_t i = prefix; i-- > 0;) {
      const Id with = g_.sequence({i ? json_.comma() : json_.space(), item(i), behind});
      const uint32_t rule = g_.add_rule("items");
      g_.define(rule, i >= min ? g_.choice({i ? end : g_.text("]"), with}) : with);
      behind = g_.rule(rule);
    }
    return g_.sequence({g_.text("["), behind});
  }

  // All schemas that apply to a property of this name.
  static std::vector<const Json*> schemas_of(const Conjunction& all, const std::string& name) {
    std::vector<const Json*> of;
    for (const Part& p : all) {
      const Json *properties = field(*p.schema, "properties"),
                 *others = field(*p.schema, "additionalProperties");
      if (const Json* s = properties ? field(*properties, name.c_str()) : nullptr) of.push_back(s);
      else if (others) of.push_back(others);
    }
    return of;
  }

  struct Property {
    std::string name;
    std::vector<const Json*> schemas;  // that its value must fulfil
    bool required = false;
    const Part* named_by = nullptr;  // the last one
  };

  // All named properties, in order of appearance.
  static std::vector<Property> properties_of(const Conjunction& all) {
    std::vector<Property> out;
    std::map<std::string, uint32_t, std::less<>> known;
    auto named = [&](const std::string& name) -> Property& {
      const auto [it, added] = known.emplace(name, uint32_t(out.size()));
      if (added) out.push_back({name, {}});
      return out[it->second];
    };
    for (const Part& p : all)
      if (const Json* properties = field(*p.schema, "properties"))
        for (const auto& [name, s] : properties->items()) named(name);
    for (const Part& p : all)
      if (const Json* list = field(*p.schema, "required"))
        for (const Json& name : *list) named(name.get_ref<const std::string&>()).required = true;
    for (const Part& p : all) {
      if (const Json* properties = field(*p.schema, "properties"))
        for (const auto& [name, s] : properties->items()) {
          Property& property = named(name);
          property.schemas.push_back(&s);
          property.named_by = &p;
        }
      if (const Json* others = field(*p.schema, "additionalProperties"))
        for (Property& property : out)
          if (property.named_by != &p) property.schemas.push_back(others);
    }
    return out;
  }

  Id object(const Conjunction& all) {
    const std::vector<Property> properties = properties_of(all);
    std::vector<const Json*> others;
    for (const Part& p : all)
      if (const Json* s = field(*p.schema, "additionalProperties")) others.push_back(s);
    // Other keys are generated only if a schema mentions them, or none are named.
    Id other = g_.never();
    if (!others.empty() || properties.empty()) {
      std::vector<std::string> names;
      for (const Property& p : properties) names.push_back(p.name);
      const Id key = names.empty() ? json_.string() : string_of(g_, CharMachine::except(names));
      other = json_.member(key, value_of(others));
    }
    if (properties.empty()) return json_.object_of(other);

    // From the last to the first: the remaining members, with and without a preceding one.
    const Id close = g_.sequence({json_.space(), g_.text("}")});
    Id tail = g_.sequence({g_.repeat(g_.sequence({json_.comma(), other}), 0, kUnbounded), close});
    Id head = g_.choice({g_.text("}"), g_.sequence({other, tail})});
    for (size_t i = properties.size(); i-- > 0;) {
      const Property& p = properties[i];
      const Id member = json_.member(g_.text(Json(p.name).dump()), value_of(p.schemas));
      auto rule = [&](Id with, Id without) {
        const uint32_t r = g_.add_rule("members");
        g_.define(r, p.required ? with : g_.choice({with, without}));
        return g_.rule(r);
      };
      head = rule(g_.sequence({member, tail}), head);
      tail = rule(g_.sequence({json_.comma(), member, tail}), tail);
    }
    return g_.sequence({g_.text("{"), json_.space(), head});
  }

  const Json& root_;
  SchemaReader reader_;
  Grammar g_;
  JsonRules json_;
  Interner known_;               // conjunctions, as the numbers of their parts
  std::vector<uint32_t> rules_;  // theirs
  std::optional<Error> error_;
  size_t comparisons_ = 0;
};

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

}  // namespace

Result<Grammar> json_schema_grammar(std::string_view schema) {
  auto error = [](std::string what, std::string_view remedy) {
    return Error{Code::Usage, "JSON schema: " + what, remedy, "", "json_schema"};
  };
  if (schema.size() > kMaxSchemaBytes)
    return error(format("it has {} bytes, at most {} are allowed", schema.size(), kMaxSchemaBytes), "");
  if (const auto why = burden(schema); !why.empty()) return error(std::string(why), "write a smaller one");
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
