// The tests of "is".
#include "template/natives.h"

namespace gimbal::tmpl {
namespace {

Value yes(bool b) { return Value::of(b); }

Value t_defined(Call& c) { return yes(!c.self.is(Kind::Undefined)); }
Value t_undefined(Call& c) { return yes(c.self.is(Kind::Undefined)); }
Value t_none(Call& c) { return yes(c.self.is(Kind::None)); }
Value t_boolean(Call& c) { return yes(c.self.is(Kind::Bool)); }
Value t_true(Call& c) { return yes(c.self.is(Kind::Bool) && c.self.flag); }
Value t_false(Call& c) { return yes(c.self.is(Kind::Bool) && !c.self.flag); }
Value t_integer(Call& c) { return yes(c.self.is(Kind::Int)); }
Value t_float(Call& c) { return yes(c.self.is(Kind::Float)); }
Value t_number(Call& c) { return yes(c.self.is_number()); }
Value t_string(Call& c) { return yes(c.self.is(Kind::Str)); }
Value t_mapping(Call& c) { return yes(c.self.is(Kind::Dict)); }
Value t_iterable(Call& c) {
  const Kind k = c.self.kind;
  return yes(k == Kind::Str || k == Kind::List || k == Kind::Dict || k == Kind::Undefined ||
             (k == Kind::Object && c.self.object->type == Object::Loop));
}
Value t_sequence(Call& c) {
  const Kind k = c.self.kind;
  return yes(k == Kind::Str || k == Kind::Dict || k == Kind::Undefined ||
             (k == Kind::List && c.self.list->is_sequence()));
}
Value t_callable(Call& c) {
  return yes(c.self.is(Kind::Object) && c.self.object->type != Object::Namespace &&
             c.self.object->type != Object::Cycler);
}
Value t_escaped(Call& c) { return yes(c.self.is(Kind::Str) && c.self.text->markup); }

Value t_lower(Call& c) {
  const std::string s = to_text(c.self).bytes;
  return yes(lower(s) == s && upper(s) != s);
}
Value t_upper(Call& c) {
  const std::string s = to_text(c.self).bytes;
  return yes(upper(s) == s && lower(s) != s);
}

Value remainder_is(Call& c, const Value& by, int64_t wanted) {
  return yes(equal(c.in.binary("%", c.self, by), Value::of(wanted)));
}
Value t_even(Call& c) { return remainder_is(c, Value::of(int64_t(2)), 0); }
Value t_odd(Call& c) { return remainder_is(c, Value::of(int64_t(2)), 1); }
Value t_divisibleby(Call& c) { return remainder_is(c, c.a[0], 0); }

Value compared(Call& c, std::string_view sign) {
  if (!given(c.a[0])) return c.in.fail("this test needs something to compare with");
  return yes(c.in.compares(sign, c.self, c.a[0]));
}
Value t_eq(Call& c) { return compared(c, "=="); }
Value t_ne(Call& c) { return compared(c, "!="); }
Value t_lt(Call& c) { return compared(c, "<"); }
Value t_le(Call& c) { return compared(c, "<="); }
Value t_gt(Call& c) { return compared(c, ">"); }
Value t_ge(Call& c) { return compared(c, ">="); }
Value t_in(Call& c) { return compared(c, "in"); }

Value t_sameas(Call& c) {
  const Value &x = c.self, &y = c.a[0];
  if (x.kind != y.kind) return yes(false);
  if (x.is(Kind::List)) return yes(x.list == y.list);
  if (x.is(Kind::Dict)) return yes(x.dict == y.dict);
  return yes(equal(x, y));
}

Value t_filter(Call& c) { return yes(find_filter(str(c, c.self))); }
Value t_test(Call& c) { return yes(find_test(str(c, c.self))); }

constexpr Native kTests[] = {
    {"defined", "", t_defined},
    {"undefined", "", t_undefined},
    {"none", "", t_none},
    {"boolean", "", t_boolean},
    {"true", "", t_true},
    {"false", "", t_false},
    {"integer", "", t_integer},
    {"float", "", t_float},
    {"number", "", t_number},
    {"string", "", t_string},
    {"mapping", "", t_mapping},
    {"iterable", "", t_iterable},
    {"sequence", "", t_sequence},
    {"callable", "", t_callable},
    {"escaped", "", t_escaped},
    {"lower", "", t_lower},
    {"upper", "", t_upper},
    {"even", "", t_even},
    {"odd", "", t_odd},
    {"divisibleby", "num", t_divisibleby},
    {"eq", "other", t_eq},
    {"equalto", "other", t_eq},
    {"==", "other", t_eq},
    {"ne", "other", t_ne},
    {"!=", "other", t_ne},
    {"lt", "other", t_lt},
    {"lessthan", "other", t_lt},
    {"<", "other", t_lt},
    {"le", "other", t_le},
    {"<=", "other", t_le},
    {"gt", "other", t_gt},
    {"greaterthan", "other", t_gt},
    {">", "other", t_gt},
    {"ge", "other", t_ge},
    {">=", "other", t_ge},
    {"in", "seq", t_in},
    {"sameas", "other", t_sameas},
    {"filter", "", t_filter},
    {"test", "", t_test},
};

}  // namespace

const Native* find_test(std::string_view name) { return find(kTests, name); }

}  // namespace gimbal::tmpl
