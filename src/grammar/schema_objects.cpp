// Objects of a schema: members in the order of the schema, then others.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "grammar/schema_compiler.h"

namespace gimbal {
namespace {

constexpr size_t kMaxKinds = 64;               // of keys, by the patterns that they match
constexpr size_t kMaxCountedMembers = 50'000;  // rules of an object with limits

// The limits on the number of members.
struct Members {
  uint32_t min = 0, max = kUnbounded;
};

}  // namespace

// Adds the schemas of the patterns of a part that match the name; whether any does.
bool SchemaCompiler::matching(const Part& p, const std::string& name, Schemas& to) {
  bool any = false;
  if (const Json* patterns = field(*p.schema, "patternProperties"))
    for (const auto& [pattern, s] : patterns->items()) {
      const auto m = reader_.machine(pattern, *p.schema);
      if (!m) return fail(m.error()), any;
      if ((*m)->matches(name)) to.push_back(&s), any = true;
    }
  return any;
}

// All schemas that apply to a property of this name.
SchemaCompiler::Schemas SchemaCompiler::schemas_of(const Conjunction& all, const std::string& name) {
  Schemas of;
  for (const Part& p : all) {
    const Json *properties = field(*p.schema, "properties"),
               *others = field(*p.schema, "additionalProperties");
    const Json* named = properties ? field(*properties, name) : nullptr;
    if (named) of.push_back(named);
    if (!matching(p, name, of) && !named && others) of.push_back(others);
  }
  return of;
}

// The names that keys may have. Their schemas may list values, or say what texts may be.
SchemaCompiler::NameRules SchemaCompiler::name_rules(const Conjunction& all) {
  NameRules names;
  for (const Part& p : all) {
    const Json* s = field(*p.schema, "propertyNames");
    if (!s) continue;
    names.any = false;
    if (const auto values = finite_values({s}, 0)) {
      std::vector<std::string> some;
      for (const Json* v : *values)
        if (v->is_string()) some.push_back(v->get<std::string>());
      if (names.only)
        std::erase_if(some, [&](const std::string& n) {
          return std::find(names.only->begin(), names.only->end(), n) == names.only->end();
        });
      names.only = std::move(some);
      continue;
    }
    Conjunction of;
    Schemas above;
    if (!add(of, *s, above) || !(types_of(of) & kString)) names.only.emplace();
    for (const Part& part : of)
      for (const char* choice : {"anyOf", "oneOf", "enum", "const"})
        if (field(*part.schema, choice)) {
          fail(*s, format("'{}' is not supported here", choice),
               "use enum, pattern or lengths for the names");
          return names;
        }
    const StringRules rules = strings_of(of);
    names.rules.min = std::max(names.rules.min, rules.min);
    names.rules.max = std::min(names.rules.max, rules.max);
    for (auto list : {&StringRules::patterns, &StringRules::other_patterns, &StringRules::other_texts})
      (names.rules.*list).insert((names.rules.*list).end(), (rules.*list).begin(), (rules.*list).end());
  }
  return names;
}

// All named properties, in order of appearance.
std::vector<SchemaCompiler::Property> SchemaCompiler::properties_of(const Conjunction& all,
                                                                    const NameRules& names) {
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
  if (names.only)
    for (const std::string& name : *names.only) named(name);
  for (const Part& p : all) {
    if (const Json* properties = field(*p.schema, "properties"))
      for (const auto& [name, s] : properties->items()) {
        Property& property = named(name);
        property.schemas.push_back(&s);
        property.named_by = &p;
      }
    if (field(*p.schema, "patternProperties"))
      for (Property& property : out)
        if (matching(p, property.name, property.schemas)) property.named_by = &p;
    if (const Json* others = field(*p.schema, "additionalProperties"))
      for (Property& property : out)
        if (property.named_by != &p) property.schemas.push_back(others);
  }
  if (names.any) return out;
  for (Property& property : out)
    for (const Part& p : all)
      if (const Json* s = field(*p.schema, "propertyNames")) {
        const auto ok = reader_.holds(Json(property.name), *s);
        if (!ok) fail(ok.error());
        else if (!*ok) property.schemas.push_back(&reader_.never());
      }
  return out;
}

// Keys that no schema names, by the patterns that they match. Those of no pattern are generated only if a
// schema mentions them, or no key is named.
SchemaCompiler::Keys SchemaCompiler::other_keys(const Conjunction& all, const std::vector<Property>& named,
                                                const NameRules& names, bool needed) {
  Keys keys;
  if (names.only) return keys;
  Schemas others;
  std::map<std::string, std::vector<const Part*>> patterns;
  for (const Part& p : all) {
    if (const Json* s = field(*p.schema, "additionalProperties")) others.push_back(s);
    if (const Json* map = field(*p.schema, "patternProperties"))
      for (const auto& [pattern, s] : map->items()) patterns[pattern].push_back(&p);
  }
  const bool open =
      needed || !others.empty() || (named.empty() && patterns.empty()) || (named.empty() && !names.any);
  std::vector<std::string> taken;
  for (const Property& p : named) taken.push_back(p.name);
  if (patterns.empty() && names.any) {
    if (!open) return keys;
    keys.kinds.emplace_back(taken.empty() ? std::nullopt : std::optional(CharMachine::except(taken)), others);
    return keys;
  }
  struct Kind {
    CharMachine machine;
    std::vector<const std::string*> patterns;
  };
  std::vector<Kind> kinds{{CharMachine::except(taken), {}}};
  auto failed = [&](const Error& e) { return fail(*all.front().schema, e.message, e.remedy), Keys(); };
  if (!names.any) {
    const auto allowed = names.rules.machine();
    if (!allowed) return failed(allowed.error());
    const auto both = kinds[0].machine.both(*allowed);
    if (!both) return failed(both.error());
    kinds[0].machine = *both;
  }
  for (const auto& [pattern, parts] : patterns) {
    const auto m = reader_.machine(pattern, *parts[0]->schema);
    if (!m) return fail(m.error()), Keys();
    const CharMachine out = (*m)->complement();
    std::vector<Kind> finer;
    for (const Kind& kind : kinds)
      for (const CharMachine* with : std::initializer_list<const CharMachine*>{*m, &out}) {
        auto both = kind.machine.both(*with);
        if (!both) return failed(both.error());
        if (!spend(kind.machine.states().size() + both->states().size(), *parts[0]->schema)) return Keys();
        if (both->empty()) continue;
        finer.push_back({*std::move(both), kind.patterns});
        if (with == *m) finer.back().patterns.push_back(&pattern);
      }
    kinds = std::move(finer);
    if (kinds.size() > kMaxKinds)
      return fail(*parts[0]->schema, "too many 'patternProperties' overlap", "use fewer patterns"), Keys();
  }
  for (Kind& kind : kinds) {
    if (kind.patterns.empty() && !open) continue;
    Schemas of;
    for (const Part& p : all) {
      const Json* map = field(*p.schema, "patternProperties");
      bool matched = false;
      for (const std::string* pattern : kind.patterns)
        if (const Json* s = map ? field(*map, *pattern) : nullptr) of.push_back(s), matched = true;
      if (const Json* s = field(*p.schema, "additionalProperties"); s && !matched) of.push_back(s);
    }
    keys.kinds.emplace_back(std::move(kind.machine), std::move(of));
  }
  return keys;
}

Grammar::Id SchemaCompiler::object(const Conjunction& all) {
  const NameRules names = name_rules(all);
  const std::vector<Property> properties = properties_of(all, names);
  Members limits;
  uint32_t required = 0;
  for (const Property& p : properties) required += p.required;
  const Json* limited = all.front().schema;
  for (const Part& p : all) {
    if (const Json* v = field(*p.schema, "minProperties"))
      limits.min = std::max(limits.min, count_of(*v)), limited = p.schema;
    if (const Json* v = field(*p.schema, "maxProperties")) limits.max = std::min(limits.max, count_of(*v));
  }
  if (error_ || limits.min > limits.max || required > limits.max) return g_.never();
  std::vector<Id> others;
  for (const auto& [machine, schemas] :
       other_keys(all, properties, names, limits.min > properties.size()).kinds)
    others.push_back(json_.member(machine ? string_of(g_, *machine) : json_.string(), value_of(schemas)));
  const Id other = others.size() == 1 ? others[0] : g_.choice(others);
  // Other keys may repeat, and a repeated one counts once: only the first of them is sure to add a member.
  if (limits.min > required && limits.min > properties.size() + 1 && !others.empty())
    return fail(*limited,
                format("'minProperties' is {}, but only {} different keys can be told apart", limits.min,
                       properties.size() + 1),
                "name the keys in 'properties', or lower minProperties");
  if (limits.min <= required) limits.min = 0;
  if (others.empty() && limits.max >= properties.size()) limits.max = kUnbounded;
  if (properties.empty() && limits.min == 0 && limits.max == kUnbounded) return json_.object_of(other);

  // From the last to the first: the remaining members, with and without a preceding one, by the number of
  // those written, as far as it matters.
  const bool counts = limits.min > 0 || limits.max < kUnbounded;
  const size_t n = properties.size();
  const size_t most = !counts ? 0 : std::min<size_t>(n, limits.max < kUnbounded ? limits.max : limits.min);
  if (n * (most + 1) > kMaxCountedMembers)
    return fail(*limited, "these limits of so many properties are too large", "leave one of them out");
  const Id close = g_.sequence({json_.space(), g_.text("}")});
  // What follows the named ones, of which `written` came.
  auto behind = [&](size_t written, bool first) -> Id {
    const bool short_of = counts && written < limits.min;
    if (short_of && written + 1 < limits.min) return g_.never();
    const auto room = limits.max == kUnbounded ? kUnbounded : uint32_t(limits.max - written);
    auto repeated = [&](uint32_t times) {
      return g_.sequence({g_.repeat(g_.sequence({json_.comma(), other}), 0, times), close});
    };
    const uint32_t then = room == kUnbounded ? room : room - (room > 0);
    const Id one = room ? g_.sequence({other, repeated(then)}) : g_.never();
    if (first) return short_of ? one : g_.choice({g_.text("}"), one});
    return short_of ? g_.sequence({json_.comma(), one}) : repeated(room);
  };
  Id head = behind(0, true);
  std::vector<Id> tails;
  for (size_t w = 0; w <= most; w++) tails.push_back(behind(w, false));
  for (size_t i = n; i-- > 0;) {
    const Property& p = properties[i];
    const Id member = json_.member(g_.text(Json(p.name).dump()), value_of(p.schemas));
    auto rule = [&](Id with, Id without) {
      const uint32_t r = g_.add_rule("members");
      g_.define(r, p.required ? with : g_.choice({with, without}));
      return g_.rule(r);
    };
    auto next = [&](size_t w) {
      if (!counts) return tails[0];
      if (w < limits.max) return tails[std::min(w + 1, most)];
      return g_.never();
    };
    head = rule(g_.sequence({member, next(0)}), head);
    std::vector<Id> before;
    for (size_t w = 0; w <= most; w++)
      before.push_back(rule(g_.sequence({json_.comma(), member, next(w)}), tails[w]));
    tails = std::move(before);
  }
  return g_.sequence({g_.text("{"), json_.space(), head});
}

}  // namespace gimbal
