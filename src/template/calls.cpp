// Calls of macros and built-ins, and the matching of arguments to parameters.
#include "base/format.h"
#include "template/interpreter.h"

namespace gimbal::tmpl {

Value Interpreter::call(const Value& callee, Arguments& given) {
  if (callee.is(Kind::Undefined)) return fail(why_undefined(callee));
  if (!callee.is(Kind::Object)) return fail(format("'{}' object is not callable", type_name(callee)));
  const Object& o = *callee.object;
  switch (o.type) {
    case Object::Macro: return call_macro(o, given);
    case Object::Loop: return call_loop(o, given);
    case Object::Builtin: return native(*find_function(o.name), callee, given, "function");
    case Object::Method: return native(*find_method(o.self, o.name), o.self, given, "method");
    case Object::Joiner: {
      Object& joiner = *callee.object;
      return joiner.index++ ? joiner.self : heap.str("");
    }
    default: return fail(format("'{}' object is not callable", type_name(callee)));
  }
}

Value Interpreter::native(const Native& n, const Value& self, Arguments& given, const char* what) {
  std::array<Value, 6> bound;
  const std::string_view parameters = n.parameters;
  // 32 bytes of a text are a step: most natives read all of it. Of a list, few read more than the length.
  if (!spend(1 + weight(self) / (self.is(Kind::Str) ? 2 : 16))) return Value(Kind::Undefined);
  if (parameters != "*") {
    size_t count = 0;
    std::array<std::string_view, 6> names;
    for (size_t at = 0; at < parameters.size(); count++) {
      const size_t end = std::min(parameters.find(' ', at), parameters.size());
      names[count] = parameters.substr(at, end - at);
      at = end + 1;
    }
    if (given.positional.size() > count)
      return fail(
          format("{} '{}' takes at most {} arguments, not {}", what, n.name, count, given.positional.size()));
    for (size_t i = 0; i < given.positional.size(); i++) bound[i] = given.positional[i];
    for (const auto& [name, v] : given.named) {
      size_t i = 0;
      while (i < count && names[i] != name) i++;
      if (i == count) return fail(format("{} '{}' has no argument '{}'", what, n.name, name));
      if (!bound[i].absent()) return fail(format("{} '{}' got argument '{}' twice", what, n.name, name));
      bound[i] = v;
    }
  }
  Call c{*this, self, bound.data(), given};
  return n.run(c);
}

Value Interpreter::apply_filter(std::string_view name, const Value& self, Arguments& given) {
  const Native* f = find_filter(name);
  return f ? native(*f, self, given, "filter") : fail(format("there is no filter '{}'", name));
}

bool Interpreter::apply_test(std::string_view name, const Value& self, Arguments& given) {
  const Native* t = find_test(name);
  if (!t) return fail(format("there is no test '{}'", name)), false;
  return truth(native(*t, self, given, "test"));
}

}  // namespace gimbal::tmpl
