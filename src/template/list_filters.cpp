// Filters over several values.
#include <algorithm>

#include "template/natives.h"

namespace gimbal::tmpl {
namespace {

Value generator(Call& c, std::vector<Value> items) {
  return c.in.heap.list(std::move(items), ListKind::Generator);
}

// "a.b.0": an attribute of an attribute of an item.
Value dig(Call& c, Value v, const Value& path, const Value& otherwise = {}) {
  if (path.is_integer()) v = c.in.item(v, path);
  else
    for (std::string_view rest = str(c, path); !c.in.failed();) {
      const size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      const bool digits =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
      int64_t index = 0;
      for (size_t i = 0; digits && i < part.size(); i++) index = index * 10 + (part[i] - '0');
      v = c.in.item(v, digits ? Value::of(index) : c.in.heap.str(part));
      if (dot == rest.size()) break;
      if (v.is(Kind::Undefined) && given(otherwise)) break;
      rest.remove_prefix(dot + 1);
    }
  return v.is(Kind::Undefined) && given(otherwise) ? otherwise : v;
}

// The sort key of items: strings are case-insensitive, unless requested otherwise.
Value key_of(Call& c, const Value& v, const Value& attribute, bool case_sensitive) {
  const Value key = given(attribute) && !attribute.is(Kind::None) ? dig(c, v, attribute) : v;
  return key.is(Kind::Str) && !case_sensitive ? c.in.heap.str(lower(key.str())) : key;
}

struct Keyed {
  std::vector<Value> keys;
  Value value;
};

// False, and an error, when two keys cannot be ordered. Merging, because the order of equal ones is kept and
// a comparison that fails must not confuse it.
bool sort(Call& c, std::vector<Keyed>& all, bool reverse) {
  bool fine = true;
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    for (size_t i = 0; fine && i < a.keys.size(); i++) {
      int order = 0;
      c.in.spend(1);
      if (equal(a.keys[i], b.keys[i])) continue;
      if (!compare(a.keys[i], b.keys[i], order)) {
        fine = false;
        c.in.fail(format("'<' not supported between instances of '{}' and '{}'", type_name(a.keys[i]),
                         type_name(b.keys[i])));
        return false;
      }
      return reverse ? order > 0 : order < 0;
    }
    return false;
  });
  return fine;
}

Value values_of(Call& c, std::vector<Keyed>& all) {
  std::vector<Value> out;
  for (const Keyed& k : all) out.push_back(k.value);
  return c.in.heap.list(std::move(out));
}

Value f_sort(Call& c) {
  std::vector<Keyed> all;
  for (const Value& v : c.in.items(c.self)) {
    Keyed k{{}, v};
    if (given(c.a[2]) && c.a[2].is(Kind::Str)) {
      for (std::string_view rest = c.a[2].str();;) {
        const size_t comma = std::min(rest.find(','), rest.size());
        k.keys.push_back(key_of(c, v, c.in.heap.str(rest.substr(0, comma)), flag(c.a[1], false)));
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
      }
    } else {
      k.keys.push_back(key_of(c, v, c.a[2], flag(c.a[1], false)));
    }
    all.push_back(std::move(k));
  }
  return sort(c, all, flag(c.a[0], false)) ? values_of(c, all) : Value(Kind::Undefined);
}

Value f_dictsort(Call& c) {
  if (!c.self.is(Kind::Dict))
    return c.in.fail(format("filter 'dictsort' needs a mapping, found {}", type_name(c.self)));
  const std::string_view by = str(c, c.a[1], "key");
  if (by != "key" && by != "value") return c.in.fail("you can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> all;
  for (const auto& [key, value] : c.self.dict->items)
    all.push_back({{key_of(c, by == "key" ? key : value, {}, flag(c.a[0], false))},
                   c.in.heap.list({key, value}, ListKind::Tuple)});
  return sort(c, all, flag(c.a[2], false)) ? values_of(c, all) : Value(Kind::Undefined);
}

Value f_groupby(Call& c) {
  if (!given(c.a[0])) return c.in.fail("filter 'groupby' needs an attribute");
  std::vector<Keyed> all;
  const bool exact = flag(c.a[2], false);
  for (const Value& v : c.in.items(c.self)) {
    const Value key = dig(c, v, c.a[0], c.a[1]);
    all.push_back({{key.is(Kind::Str) && !exact ? c.in.heap.str(lower(key.str())) : key, key}, v});
    all.back().keys.pop_back();
  }
  if (!sort(c, all, false)) return Value(Kind::Undefined);
  std::vector<Value> groups;
  for (size_t at = 0; at < all.size() && !c.in.failed();) {
    std::vector<Value> members;
    const size_t first = at;
    while (at < all.size() && equal(all[at].keys[0], all[first].keys[0])) members.push_back(all[at++].value);
    const Value name = dig(c, all[first].value, c.a[0], c.a[1]);
    groups.push_back(c.in.heap.list({name, c.in.heap.list(std::move(members))}, ListKind::Group));
  }
  return c.in.heap.list(std::move(groups));
}

Value f_unique(Call& c) {
  std::vector<Value> seen, out;
  for (const Value& v : c.in.items(c.self)) {
    const Value key = key_of(c, v, c.a[1], flag(c.a[0], false));
    if (!hashable(key)) return c.in.fail(format("unhashable type: '{}'", type_name(key)));
    if (!c.in.spend(1 + seen.size() / 4)) break;
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& s) { return equal(s, key); })) continue;
    seen.push_back(key);
    out.push_back(v);
  }
  return generator(c, std::move(out));
}

Value extreme(Call& c, int wanted) {
  Value best, best_key;
  for (const Value& v : c.in.items(c.self)) {
    const Value key = key_of(c, v, c.a[1], flag(c.a[0], false));
    int order = wanted;
    if (given(best) && !compare(key, best_key, order))
      return c.in.fail(format("'{}' not supported between instances of '{}' and '{}'", wanted < 0 ? '<' : '>',
                              type_name(key), type_name(best_key)));
    if (order * wanted > 0) best = v, best_key = key;
  }
  return given(best) ? best : c.in.heap.undefined("no aggregated item, sequence was empty", nullptr);
}
Value f_min(Call& c) { return extreme(c, -1); }
Value f_max(Call& c) { return extreme(c, 1); }

Value f_sum(Call& c) {
  Value sum = given(c.a[1]) ? c.a[1] : Value::of(int64_t(0));
  for (const Value& v : c.in.items(c.self)) {
    const Value part = given(c.a[0]) && !c.a[0].is(Kind::None) ? dig(c, v, c.a[0]) : v;
    if (c.in.failed()) break;
    sum = c.in.binary("+", sum, part);
  }
  return sum;
}

Value f_join(Call& c) {
  const Text between = given(c.a[0]) ? to_text(c.a[0]) : Text();
  Text out;
  bool first = true;
  for (const Value& v : c.in.items(c.self)) {
    if (!std::exchange(first, false)) out.append(between);
    out.append(to_text(given(c.a[1]) && !c.a[1].is(Kind::None) ? dig(c, v, c.a[1]) : v));
    if (out.bytes.size() > c.in.options().limits.output_bytes) return c.in.stop("a text that is too long");
  }
  return c.in.heap.str(std::move(out));
}

Value f_length(Call& c) {
  const Value& v = c.self;
  switch (v.kind) {
    case Kind::Undefined: return Value::of(int64_t(0));
    case Kind::Str: return Value::of(int64_t(count_codes(v.str())));
    case Kind::Dict: return Value::of(int64_t(v.dict->items.size()));
    case Kind::List:
      if (v.list->kind != ListKind::Generator) return Value::of(int64_t(v.list->items.size()));
      [[fallthrough]];
    default: return c.in.fail(format("object of type '{}' has no len()", type_name(v)));
  }
}

Value f_first(Call& c) {
  const auto all = c.in.items(c.self);
  return all.empty() ? c.in.heap.undefined("no first item, sequence was empty", nullptr) : all.front();
}
Value f_last(Call& c) {
  const auto all = c.in.items(c.self);
  return all.empty() ? c.in.heap.undefined("no last item, sequence was empty", nullptr) : all.back();
}
Value f_list(Call& c) { return c.in.heap.list(c.in.items(c.self)); }

Value f_reverse(Call& c) {
  auto all = c.in.items(c.self);
  std::reverse(all.begin(), all.end());
  return c.self.is(Kind::Str) ? c.in.concatenate(all) : generator(c, std::move(all));
}

Value f_items(Call& c) {
  std::vector<Value> out;
  if (c.self.is(Kind::Undefined)) return generator(c, {});
  if (!c.self.is(Kind::Dict)) return c.in.fail("can only get item pairs from a mapping");
  for (const auto& [key, value] : c.self.dict->items)
    out.push_back(c.in.heap.list({key, value}, ListKind::Tuple));
  return generator(c, std::move(out));
}

Value f_batch(Call& c) {
  const int64_t size = whole(c, c.a[0], 0);
  if (size < 1 || size > 100000) return c.in.fail("filter 'batch' needs a size above 0");
  std::vector<Value> out, part;
  for (const Value& v : c.in.items(c.self)) {
    if (int64_t(part.size()) == size) out.push_back(c.in.heap.list(std::exchange(part, {})));
    part.push_back(v);
  }
  if (!part.empty()) {
    if (given(c.a[1]) && !c.a[1].is(Kind::None)) part.resize(size_t(size), c.a[1]);
    out.push_back(c.in.heap.list(std::move(part)));
  }
  return generator(c, std::move(out));
}

Value f_slice(Call& c) {
  const int64_t slices = whole(c, c.a[0], 0);
  if (slices < 1 || slices > 100000) return c.in.fail("filter 'slice' needs a number of slices above 0");
  const auto all = c.in.items(c.self);
  const size_t each = all.size() / size_t(slices), longer = all.size() % size_t(slices);
  std::vector<Value> out;
  size_t at = 0;
  for (size_t i = 0; i < size_t(slices) && c.in.spend(1); i++) {
    const size_t n = each + (i < longer);
    std::vector<Value> part(all.begin() + long(at), all.begin() + long(at + n));
    at += n;
    if (given(c.a[1]) && !c.a[1].is(Kind::None) && i >= longer) part.push_back(c.a[1]);
    out.push_back(c.in.heap.list(std::move(part)));
  }
  return generator(c, std::move(out));
}

Value f_attr(Call& c) {
  const std::string_view name = str(c, c.a[0]);
  if (c.self.is(Kind::Dict) && !find_method(c.self, name)) return c.in.heap.undefined(name, "dict");
  return c.in.attribute(c.self, name);
}

// map('filter', ...), map(attribute='name')
Value f_map(Call& c) {
  if (!truth(c.self)) return generator(c, {});  // none, too
  Value attribute, otherwise;
  for (const auto& [name, v] : c.given.named) {
    if (name == "attribute") attribute = v;
    else if (name == "default") otherwise = v;
  }
  std::vector<Value> out;
  if (c.given.positional.empty() && !given(attribute)) return c.in.fail("map requires a filter argument");
  Arguments rest = c.given;
  std::string_view filter;
  if (!c.given.positional.empty()) {
    filter = str(c, c.given.positional[0]);
    rest.positional.erase(rest.positional.begin());
  }
  for (const Value& v : c.in.items(c.self)) {
    if (c.in.failed()) break;
    if (filter.empty()) {
      out.push_back(dig(c, v, attribute, otherwise));
    } else {
      Arguments given = rest;
      out.push_back(c.in.apply_filter(filter, v, given));
    }
  }
  return generator(c, std::move(out));
}

// Those of which a test is `wanted`; the test is about an attribute, or about the item itself.
Value chosen(Call& c, bool wanted, bool by_attribute) {
  if (!truth(c.self)) return generator(c, {});
  Arguments rest = c.given;
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) return c.in.fail("missing parameter for attribute name");
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::string_view test;
  if (!rest.positional.empty()) {
    test = str(c, rest.positional[0]);
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> out;
  for (const Value& v : c.in.items(c.self)) {
    if (!c.in.spend(1)) break;
    const Value tested = by_attribute ? dig(c, v, attribute) : v;
    Arguments given = rest;
    if ((test.empty() ? truth(tested) : c.in.apply_test(test, tested, given)) == wanted) out.push_back(v);
  }
  return generator(c, std::move(out));
}
Value f_select(Call& c) { return chosen(c, true, false); }
Value f_reject(Call& c) { return chosen(c, false, false); }
Value f_selectattr(Call& c) { return chosen(c, true, true); }
Value f_rejectattr(Call& c) { return chosen(c, false, true); }

constexpr Native kListFilters[] = {
    {"length", "", f_length},
    {"count", "", f_length},
    {"join", "d attribute", f_join},
    {"list", "", f_list},
    {"first", "", f_first},
    {"last", "", f_last},
    {"map", "*", f_map},
    {"select", "*", f_select},
    {"reject", "*", f_reject},
    {"selectattr", "*", f_selectattr},
    {"rejectattr", "*", f_rejectattr},
    {"items", "", f_items},
    {"sort", "reverse case_sensitive attribute", f_sort},
    {"dictsort", "case_sensitive by reverse", f_dictsort},
    {"groupby", "attribute default case_sensitive", f_groupby},
    {"unique", "case_sensitive attribute", f_unique},
    {"min", "case_sensitive attribute", f_min},
    {"max", "case_sensitive attribute", f_max},
    {"sum", "attribute start", f_sum},
    {"reverse", "", f_reverse},
    {"batch", "linecount fill_with", f_batch},
    {"slice", "slices fill_with", f_slice},
    {"attr", "name", f_attr},
};

}  // namespace

std::span<const Native> list_filters() { return kListFilters; }

}  // namespace gimbal::tmpl
