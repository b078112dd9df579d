// The value of an expression.
#include "base/format.h"
#include "template/interpreter.h"

namespace gimbal::tmpl {

Value Interpreter::eval(const Expression* e) {
  Level level(*this);
  if (!spend(1)) return Value(Kind::Undefined);
  line_ = e->line;
  return compute(*e);
}

Value Interpreter::lookup(std::string_view name) {
  for (const Scope* s = scope_; s; s = s->parent)
    if (const Value* v = s->find(name)) return *v;
  if (find_function(name)) return Value::of(heap.object(Object::Builtin, name));
  return heap.undefined(name, nullptr);
}

Value Interpreter::compute(const Expression& e) {
  const auto part = [&](size_t i) { return eval(e.items[i]); };
  const auto parts = [&] {
    std::vector<Value> values;
    for (const Expression* x : e.items) values.push_back(eval(x));
    return values;
  };
  switch (e.kind) {
    case Expression::Constant: return e.value;
    case Expression::Name: return lookup(e.name);
    case Expression::List: return heap.list(parts());
    case Expression::Tuple: return heap.list(parts(), ListKind::Tuple);
    case Expression::Dict: {
      Dict d;
      for (size_t i = 0; i + 1 < e.items.size() && !failed(); i += 2) {
        const Value key = part(i);
        if (!hashable(key)) return fail(format("unhashable type: '{}'", type_name(key)));
        d.set(key, part(i + 1));
      }
      return heap.dict(std::move(d));
    }
    case Expression::Attribute: return attribute(part(0), e.name);
    case Expression::Item: {
      const Value of = part(0);
      return item(of, part(1));
    }
    case Expression::Slice: {
      const auto bound = [&](size_t i) { return e.items[i] ? part(i) : Value(Kind::None); };
      const Value of = part(0), begin = bound(1), end = bound(2);
      return slice(of, begin, end, bound(3));
    }
    case Expression::Call: {
      const Value callee = part(0);
      Arguments given = arguments(e.arguments);
      line_ = e.line;
      return failed() ? Value(Kind::Undefined) : call(callee, given);
    }
    case Expression::Filter: return filtered(e, nullptr);
    case Expression::Test: {
      const Value v = part(0);
      Arguments given = arguments(e.arguments);
      return Value::of(apply_test(e.name, v, given));
    }
    case Expression::Unary: {
      const Value v = part(0);
      if (e.signs[0] == "not") return Value::of(!truth(v));
      if (v.is(Kind::Float)) return Value::of(e.signs[0] == "-" ? -v.number : v.number);
      if (!v.is_integer()) {
        if (v.is(Kind::Undefined)) return fail(why_undefined(v));
        return fail(format("bad operand type for unary {}: '{}'", e.signs[0], type_name(v)));
      }
      return e.signs[0] == "-" ? binary("-", Value::of(int64_t(0)), v) : Value::of(v.as_integer());
    }
    case Expression::Binary: {
      Value left = part(0);
      for (size_t i = 0; i < e.signs.size() && !failed(); i++) left = binary(e.signs[i], left, part(i + 1));
      return left;
    }
    case Expression::Concat: return concatenate(parts());
    case Expression::Compare: return compare_chain(e);
    case Expression::And:
    case Expression::Or: {
      Value v;
      for (const Expression* x : e.items) {
        v = eval(x);
        if (truth(v) == (e.kind == Expression::Or)) break;
      }
      return v;
    }
    case Expression::Conditional:
      if (truth(part(1))) return part(0);
      if (e.items[2]) return part(2);
      return Value(Kind::Undefined);
  }
  return Value(Kind::Undefined);
}

Value Interpreter::compare_chain(const Expression& e) {
  Value left = eval(e.items[0]);
  for (size_t i = 0; i < e.signs.size() && !failed(); i++) {
    const Value right = eval(e.items[i + 1]);
    if (!compares(e.signs[i], left, right)) return Value::of(false);
    left = right;
  }
  return Value::of(true);
}

// `block`: the text that a filter without a subject works on.
Value Interpreter::filtered(const Expression& e, const Value* block) {
  Level level(*this);
  if (!spend(1)) return Value(Kind::Undefined);
  const Expression* of = e.items[0];
  const Value subject = !of                                       ? *block
                        : block && of->kind == Expression::Filter ? filtered(*of, block)
                                                                  : eval(of);
  Arguments given = arguments(e.arguments);
  line_ = e.line;
  return failed() ? Value(Kind::Undefined) : apply_filter(e.name, subject, given);
}

Arguments Interpreter::arguments(const std::vector<Argument>& given) {
  Arguments out;
  for (const Argument& a : given) {
    const Value v = eval(a.value);
    if (failed()) break;
    switch (a.kind) {
      case Argument::Positional: out.positional.push_back(v); break;
      case Argument::Named: out.named.emplace_back(a.name, v); break;
      case Argument::Items:
        for (const Value& item : items(v)) out.positional.push_back(item);
        break;
      case Argument::Entries:
        if (!v.is(Kind::Dict)) fail("argument after ** must be a mapping");
        else
          for (const auto& [key, value] : v.dict->items) {
            if (!key.is(Kind::Str)) fail("keywords must be strings");
            else out.named.emplace_back(key.str(), value);
          }
        break;
    }
  }
  return out;
}

}  // namespace gimbal::tmpl
