// Whether two alternatives of oneOf exclude each other.
#include <algorithm>

#include "grammar/schema_compiler.h"

namespace gimbal {
namespace {

constexpr size_t kMaxComparisons = 200'000;
constexpr int kMaxProperties = 8;  // in each other

}  // namespace

bool SchemaCompiler::disjoint(const Json& a, const Json& b, const Conjunction* beside, int depth) {
  if (++comparisons_ > kMaxComparisons) return false;
  Conjunction x, y;
  Schemas above;
  if (!add(x, a, above) || !add(y, b, above)) return true;
  uint8_t types = types_of(x) & types_of(y);
  // A schema without a type is written with the types of its keywords only, but other values satisfy it.
  if (beside) {
    auto written = [&](Conjunction c) {
      c.insert(c.end(), beside->begin(), beside->end());
      return types_of(c);
    };
    types = (written(x) & strict_types_of(y)) | (written(y) & strict_types_of(x));
  }
  if (!types) return true;
  if (constants_fail(x, b) || constants_fail(y, a)) return true;
  if (!(types & ~kNumber)) return bounds_of(x).disjoint(bounds_of(y));
  if (types == kString) {
    const StringRules s = strings_of(x), t = strings_of(y);
    return s.max < t.min || t.max < s.min;
  }
  if (types != kObject || depth > kMaxProperties) return false;
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
bool SchemaCompiler::properties_disjoint(const Conjunction& x, const Conjunction& y, const std::string& name,
                                         int depth) {
  const auto in_x = schemas_of(x, name), in_y = schemas_of(y, name);
  auto forbids = [](const Schemas& all) {
    return std::any_of(all.begin(), all.end(),
                       [](const Json* s) { return s->is_boolean() && !s->get<bool>(); });
  };
  if (forbids(in_x) || forbids(in_y)) return true;
  if (!requires_name(x, name) || !requires_name(y, name)) return false;
  for (const Json* s : in_x)
    for (const Json* t : in_y)
      if (disjoint(*s, *t, nullptr, depth + 1)) return true;
  return false;
}

bool SchemaCompiler::requires_name(const Conjunction& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const Part& p) {
    const Json* r = field(*p.schema, "required");
    return r && std::find(r->begin(), r->end(), name) != r->end();
  });
}

// Whether `all` lists its values, and none of them satisfies `other`.
bool SchemaCompiler::constants_fail(const Conjunction& all, const Json& other) {
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

}  // namespace gimbal
