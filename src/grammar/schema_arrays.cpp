// Lists of a schema. `contains` and `uniqueItems` need a rule for each state of a list: how many items it
// has, how many of them were counted, or which of the possible values are in it.
#include <algorithm>
#include <bit>

#include "base/format.h"
#include "grammar/schema_compiler.h"

namespace gimbal {
namespace {

constexpr size_t kMaxStates = 20'000;  // of a list
constexpr size_t kMaxSets = 12;        // values whose sets are told apart: 4096 sets

}  // namespace

SchemaCompiler::Items SchemaCompiler::items_of(const Conjunction& all) {
  Items items;
  for (const Part& p : all) {
    if (const Json* v = field(*p.schema, "minItems")) items.min = std::max(items.min, count_of(*v));
    if (const Json* v = field(*p.schema, "maxItems")) items.max = std::min(items.max, count_of(*v));
    if (const Json* v = SchemaReader::first_items(*p.schema)) items.first = std::max(items.first, v->size());
  }
  items.first = std::min<size_t>(items.first, items.max);
  return items;
}

SchemaCompiler::Schemas SchemaCompiler::item_of(const Conjunction& all, size_t i) {
  Schemas of;
  for (const Part& p : all) {
    const Json *first = SchemaReader::first_items(*p.schema), *rest = SchemaReader::other_items(*p.schema);
    if (first && i < first->size()) of.push_back(&(*first)[i]);
    else if (rest) of.push_back(rest);
  }
  return of;
}

Grammar::Id SchemaCompiler::array(const Conjunction& all) {
  const Items items = items_of(all);
  if (items.min > items.max) return g_.never();
  const Json* counted = nullptr;
  bool unique = false;
  for (const Part& p : all) {
    if (const Json* v = field(*p.schema, "uniqueItems")) unique |= *v == true;
    if (!field(*p.schema, "contains")) continue;
    const Json* least = field(*p.schema, "minContains");
    if (least && count_of(*least) == 0 && !field(*p.schema, "maxContains")) continue;
    if (counted) return fail(*p.schema, "two 'contains' for one list are not supported", "leave one out");
    counted = p.schema;
  }
  if (unique && items.max > 1) {
    if (counted)
      return fail(*counted, "'contains' together with 'uniqueItems' is not supported", "leave one out");
    return different_items(all, items);
  }
  return counted ? containing(all, items, *counted) : plain_array(all, items);
}

Grammar::Id SchemaCompiler::plain_array(const Conjunction& all, const Items& items) {
  const auto [min, max, prefix] = items;
  const Id rest = value_of(item_of(all, SIZE_MAX));
  if (prefix == 0) return json_.array_of(rest, min, max);
  // From the last of the prefix to the first: what follows so many items.
  auto left = [&](uint32_t n) {
    return n == kUnbounded ? n : n - uint32_t(std::min<size_t>(n, items.first));
  };
  const Id end = g_.sequence({json_.space(), g_.text("]")});
  Id behind = g_.sequence({g_.repeat(g_.sequence({json_.comma(), rest}), left(min), left(max)), end});
  for (size_t i = prefix; i-- > 0;) {
    const Id with = g_.sequence({i ? json_.comma() : json_.space(), value_of(item_of(all, i)), behind});
    const uint32_t rule = g_.add_rule("items");
    g_.define(rule, i >= min ? g_.choice({i ? end : g_.text("]"), with}) : with);
    behind = g_.rule(rule);
  }
  return g_.sequence({g_.text("["), behind});
}

// The values of which all items are one; std::nullopt: they are not listed.
std::optional<std::vector<const Json*>> SchemaCompiler::finite_values(const Schemas& schemas, int depth) {
  static const Json kTruths = Json::array({true, false}), kNothing = Json::array({nullptr});
  if (depth > 8) return std::nullopt;
  Conjunction all;
  Schemas above;
  for (const Json* s : schemas)
    if (!add(all, *s, above)) return std::vector<const Json*>();
  std::optional<std::vector<const Json*>> values;
  auto take = [&](const Json& list) {
    if (!values) values.emplace();
    for (const Json& v : list) values->push_back(&v);
  };
  for (const Part& p : all) {
    if (values) break;
    if (const Json* list = field(*p.schema, "enum")) take(*list);
    else if (const Json* one = field(*p.schema, "const")) values.emplace(1, one);
  }
  for (const char* name : {"anyOf", "oneOf"})
    for (const Part& p : all) {
      const Json* list = values ? nullptr : field(*p.schema, name);
      if (!list) continue;
      std::vector<const Json*> some;
      bool known = true;
      for (const Json& s : *list) {
        const auto of = finite_values({&s}, depth + 1);
        known = known && of;
        if (of) some.insert(some.end(), of->begin(), of->end());
      }
      if (known) values = some;
    }
  const uint8_t types = types_of(all);
  if (!values && !(types & ~(kBoolean | kNull))) {
    if (types & kBoolean) take(kTruths);
    if (types & kNull) take(kNothing);
    if (!types) values.emplace();
  }
  if (!values) return std::nullopt;
  std::vector<const Json*> fit;
  for (const Json* v : *values) {
    bool ok = std::none_of(fit.begin(), fit.end(), [&](const Json* f) { return same_value(*f, *v); });
    for (const Part& p : all) {
      const auto holds = ok ? reader_.holds(*v, *p.schema) : Result<bool>(false);
      if (!holds) fail(holds.error());
      ok = holds && *holds;
    }
    if (ok) fit.push_back(v);
  }
  return fit;
}

Grammar::Id SchemaCompiler::different_items(const Conjunction& all, const Items& items) {
  const Json* by = nullptr;
  for (const Part& p : all)
    if (const Json* v = field(*p.schema, "uniqueItems"); v && *v == true) by = p.schema;
  if (items.first == 0) {
    const Schemas of = item_of(all, SIZE_MAX);
    if (const auto values = of.empty() ? std::nullopt : finite_values(of, 0))
      return distinct(*values, items, *by);
  } else {
    // Places with schemas that exclude each other, and no others.
    auto never = [](const Json* s) { return *s == false; };
    const Schemas rest = item_of(all, SIZE_MAX);
    bool apart = items.max == items.first || std::any_of(rest.begin(), rest.end(), never);
    for (size_t i = 0; i < items.first && apart; i++)
      for (size_t j = 0; j < i && apart; j++) {
        const Schemas x = item_of(all, i), y = item_of(all, j);
        apart = std::any_of(x.begin(), x.end(), [&](const Json* s) {
          return std::any_of(y.begin(), y.end(), [&](const Json* t) {
            const Conjunction alone;
            return disjoint(*s, *t, &alone, 0);
          });
        });
      }
    if (apart) return plain_array(all, items);
  }
  return fail(
      *by, "'uniqueItems' of items that are not listed is not supported: no grammar can compare them",
      "list the items' values in 'enum', set maxItems to 1, or leave uniqueItems out and check the answer");
}

// Lists of different values: in any order if there are few, else in the order of the schema.
Grammar::Id SchemaCompiler::distinct(const std::vector<const Json*>& values, const Items& items,
                                     const Json& schema) {
  const size_t n = values.size();
  const size_t most = std::min<size_t>(items.max, n);
  if (items.min > n) return g_.never();
  const Id end = g_.sequence({json_.space(), g_.text("]")});
  std::vector<Id> texts;
  for (const Json* v : values) texts.push_back(g_.text(v->dump()));
  auto item = [&](size_t i, bool first, Id then) {
    return g_.sequence({first ? json_.space() : json_.comma(), texts[i], then});
  };
  std::vector<uint32_t> rules;
  auto make = [&](size_t states) {
    for (size_t i = 0; i < states; i++) rules.push_back(g_.add_rule("different items"));
  };
  if (n <= kMaxSets) {
    make(size_t(1) << n);
    for (size_t set = 0; set < rules.size(); set++) {
      const size_t has = size_t(std::popcount(set));
      std::vector<Id> ways;
      if (has >= items.min) ways.push_back(has ? end : g_.text("]"));
      for (size_t i = 0; i < n && has < most; i++)
        if (!(set >> i & 1)) ways.push_back(item(i, has == 0, g_.rule(rules[set | size_t(1) << i])));
      g_.define(rules[set], g_.choice(ways));
    }
    return g_.sequence({g_.text("["), g_.rule(rules[0])});
  }
  // State: the next value that may come, and how many items there are, as far as it matters.
  const size_t counts = items.max < n ? most + 1 : std::max<size_t>(items.min, 1) + 1;
  if ((n + 1) * counts > kMaxStates)
    return fail(schema, format("'uniqueItems' of {} values with these limits is too large", n),
                "list fewer values, or leave minItems and maxItems out");
  make((n + 1) * counts);
  for (size_t i = 0; i <= n; i++)
    for (size_t has = 0; has < counts; has++) {
      std::vector<Id> ways;
      if (i < n && has < most)
        ways.push_back(item(i, has == 0, g_.rule(rules[(i + 1) * counts + std::min(has + 1, counts - 1)])));
      if (i < n) ways.push_back(g_.rule(rules[(i + 1) * counts + has]));
      else if (has >= items.min) ways.push_back(has ? end : g_.text("]"));
      g_.define(rules[i * counts + has], g_.choice(ways));
    }
  return g_.sequence({g_.text("["), g_.rule(rules[0])});
}

// `by`: the schema with `contains`. State: the number of items and of those counted, as far as they matter.
Grammar::Id SchemaCompiler::containing(const Conjunction& all, const Items& items, const Json& by) {
  const Json *least = field(by, "minContains"), *most = field(by, "maxContains");
  const size_t min = least ? count_of(*least) : 1, max = most ? count_of(*most) : kUnbounded;
  if (min > max || min > items.max) return g_.never();
  const size_t last = items.max < kUnbounded ? items.max : std::max<size_t>(items.first, items.min);
  const size_t counts = (most ? max : min) + 1, lengths = std::max<size_t>(last, 1) + 1;
  if (counts > kMaxStates || lengths > kMaxStates || counts * lengths > kMaxStates)
    return fail(by, "'contains' with these limits is too large", "use smaller limits");
  const Json* counted = field(by, "contains");
  const Json* others = nullptr;  // what an item that is not counted satisfies
  if (most) {
    const auto made = reader_.opposite_schema(*counted);
    if (!made) return fail(made.error());
    others = *made;
  }
  const Id end = g_.sequence({json_.space(), g_.text("]")});
  std::vector<uint32_t> rules;
  for (size_t i = 0; i < counts * lengths; i++) rules.push_back(g_.add_rule("items with some"));
  for (size_t i = 0; i < lengths; i++)
    for (size_t has = 0; has < counts; has++) {
      std::vector<Id> ways;
      if (i >= items.min && has >= min) ways.push_back(i ? end : g_.text("]"));
      auto item = [&](const Json* also, size_t then_has) {
        Schemas of = item_of(all, items.max == kUnbounded && i == lengths - 1 ? SIZE_MAX : i);
        if (also) of.push_back(also);
        const size_t then = std::min(i + 1, lengths - 1);
        ways.push_back(g_.sequence(
            {i ? json_.comma() : json_.space(), value_of(of), g_.rule(rules[then * counts + then_has])}));
      };
      if (i < items.max && i < (items.max == kUnbounded ? SIZE_MAX : last)) {
        if (has < max && (most || has < min)) item(counted, has + 1);
        item(others, has);
      }
      g_.define(rules[i * counts + has], g_.choice(ways));
    }
  return g_.sequence({g_.text("["), g_.rule(rules[0])});
}

}  // namespace gimbal
