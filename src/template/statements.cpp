// Executes statements.
#include <utility>

#include "base/format.h"
#include "template/interpreter.h"

namespace gimbal::tmpl {

void Interpreter::print(const Value& v) {
  const size_t before = out_->bytes.size();
  if (v.is(Kind::Str)) out_->append(*v.text);
  else out_->append(to_text(v));
  wrote(out_->bytes.size() - before);
}

void Interpreter::wrote(size_t bytes) {
  written_ += bytes;
  if (written_ > options_.limits.output_bytes)
    stop(format("it writes more than {} bytes", options_.limits.output_bytes));
}

Interpreter::Flow Interpreter::body(const std::vector<const Statement*>& statements) {
  Level level(*this);
  for (const Statement* s : statements) {
    if (!spend(1)) return Flow::Break;
    at_ = s;
    line_ = s->line;
    if (const Flow f = exec(*s); f != Flow::Next) return f;
  }
  return failed() ? Flow::Break : Flow::Next;
}

Interpreter::Flow Interpreter::exec(const Statement& s) {
  Scope* const around = scope_;
  switch (s.kind) {
    case Statement::Data:
      out_->append(s.text, false);
      wrote(s.text.size());
      break;
    case Statement::Print: print(eval(s.value)); break;
    case Statement::If: return choose(s);
    case Statement::For: loop(s, eval(s.value), around, 0); break;
    case Statement::Set: assign(*s.target, eval(s.value)); break;
    case Statement::SetBlock: {
      Value v = captured_str(s.branches[0].body);
      if (s.value) v = filtered(*s.value, &v);
      assign(*s.target, v);
      break;
    }
    case Statement::Macro: scope_->set(s.text, Value::of(macro(s))); break;
    case Statement::CallBlock: {
      const Value callee = eval(s.value->items[0]);
      Arguments given = arguments(s.value->arguments);
      given.named.emplace_back("caller", Value::of(macro(s)));
      if (!failed()) print(call(callee, given));
      break;
    }
    case Statement::With: {
      Scope* inner = scope(around);
      for (const Parameter& p : s.parameters) inner->set(p.name, eval(p.otherwise));
      scope_ = inner;
      const Flow f = body(s.branches[0].body);
      scope_ = around;
      return f;
    }
    case Statement::FilterBlock: {
      const Value v = captured_str(s.branches[0].body);
      print(filtered(*s.value, &v));
      break;
    }
    case Statement::Scope: {
      scope_ = scope(around);
      const Flow f = body(s.branches[0].body);
      scope_ = around;
      return f;
    }
    case Statement::Break: return Flow::Break;
    case Statement::Continue: return Flow::Continue;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::choose(const Statement& s) {
  for (const Branch& b : s.branches)
    if (!b.test || truth(eval(b.test))) return failed() ? Flow::Break : body(b.body);
  return Flow::Next;
}

void Interpreter::loop(const Statement& s, const Value& over, Scope* around, size_t depth) {
  Scope* const outer = scope_;
  const Statement* const outer_at = at_;
  std::vector<Value> all = items(over);
  Scope* inner = scope(around);
  if (s.test) {
    std::vector<Value> kept;
    for (const Value& v : all) {
      inner->names.clear();
      scope_ = inner;
      assign(*s.target, v, true);
      if (truth(eval(s.test))) kept.push_back(v);
      if (failed()) return;
    }
    all = std::move(kept);
  }
  Object* l = heap.object(Object::Loop, "loop");
  l->self = heap.list(std::move(all));
  l->macro = &s;
  l->scope = around;
  l->depth = depth;
  const std::vector<Value>& values = l->self.list->items;
  size_t closures = closures_;
  for (size_t& i = l->index; i < values.size(); i++) {
    if (closures_ != closures) inner = scope(around), closures = closures_;  // a macro keeps the last one
    else inner->names.clear();
    scope_ = inner;
    assign(*s.target, values[i], true);
    inner->set("loop", Value::of(l));
    const Flow f = failed() ? Flow::Break : body(s.branches[0].body);
    if (f == Flow::Break) break;
  }
  scope_ = outer;
  at_ = outer_at;
  if (values.empty() && s.branches.size() > 1) {
    scope_ = scope(around);
    body(s.branches[1].body);
    scope_ = outer;
  }
}

void Interpreter::assign(const Expression& target, const Value& v, bool loop_target) {
  if (failed()) return;
  switch (target.kind) {
    case Expression::Name: return scope_->set(target.name, v);
    case Expression::Attribute: {
      const Value space = lookup(target.items[0]->name);
      if (!space.is(Kind::Object) || space.object->type != Object::Namespace) {
        fail("cannot assign attribute on non-namespace object");
        return;
      }
      Dict& fields = space.object->fields;
      if (const Value* old = fields.find(target.name)) *const_cast<Value*>(old) = v;
      else fields.items.emplace_back(heap.str(target.name), v);
      return;
    }
    default: {
      const std::vector<Value> parts = items(v);
      if (failed()) return;
      if (parts.size() != target.items.size()) {
        fail(format("cannot unpack {} values into {} names", parts.size(), target.items.size()));
        return;
      }
      for (size_t i = 0; i < parts.size(); i++) assign(*target.items[i], parts[i], loop_target);
    }
  }
}

Text Interpreter::captured(const std::vector<const Statement*>& statements) {
  Text text;
  Text* const out = std::exchange(out_, &text);
  Scope* const around = std::exchange(scope_, scope(scope_));
  body(statements);
  scope_ = around;
  out_ = out;
  return text;
}

Object* Interpreter::macro(const Statement& s) {
  Object* m = heap.object(Object::Macro, s.text);
  m->macro = &s;
  m->scope = scope_;
  closures_++;
  return m;
}

Value Interpreter::call_macro(const Object& m, Arguments& given) {
  Level level(*this);
  const Statement& s = *m.macro;
  Scope* inner = scope(m.scope);
  if (!spend(1)) return Value(Kind::Undefined);
  const size_t known = s.parameters.size();
  for (size_t i = 0; i < known && i < given.positional.size(); i++)
    inner->set(s.parameters[i].name, given.positional[i]);
  if (given.positional.size() > known && !s.catches_varargs)
    return fail(format("macro '{}' takes not more than {} argument(s)", s.text, known));
  Dict rest;
  Value caller;
  for (const auto& [name, v] : given.named) {
    bool taken = false;
    for (const Parameter& p : s.parameters)
      if (p.name == name) {
        if (inner->find(name))
          return fail(format("macro '{}' got multiple values for argument '{}'", s.text, name));
        inner->set(p.name, v);
        taken = true;
      }
    if (taken) continue;
    if (name == "caller" && s.knows_caller) caller = v;
    else if (s.catches_kwargs && spend(rest.items.size() / 8)) rest.set(heap.str(name), v);
    else if (s.catches_kwargs) break;
    else if (name == "caller")
      return fail(format("macro '{}' was invoked with two values for the special caller argument", s.text));
    else return fail(format("macro '{}' takes no keyword argument '{}'", s.text, name));
  }
  const Statement* const at = at_;
  const int line = line_;
  Scope* const around = std::exchange(scope_, inner);
  for (const Parameter& p : s.parameters)
    if (!inner->find(p.name)) {
      const Value v = p.otherwise ? eval(p.otherwise) : heap.undefined(p.name, nullptr);
      inner->set(p.name, v);
    }
  if (s.catches_varargs) {
    const auto first = given.positional.begin() + long(std::min(known, given.positional.size()));
    inner->set("varargs", heap.list({first, given.positional.end()}, ListKind::Tuple));
  }
  if (s.catches_kwargs) inner->set("kwargs", heap.dict(std::move(rest)));
  if (s.knows_caller && !inner->find("caller"))
    inner->set("caller", caller.absent() ? heap.undefined("caller", nullptr) : caller);
  const Value text = captured_str(s.branches[0].body);
  scope_ = around;
  at_ = at;
  line_ = line;
  return text;
}

Value Interpreter::call_loop(const Object& l, Arguments& given) {
  Level level(*this);
  if (!l.macro->recursive) return fail("the loop is not marked 'recursive', so 'loop' cannot be called");
  if (given.positional.size() != 1 || !spend(1)) return fail("loop() takes what to go through");
  Text text;
  Text* const out = std::exchange(out_, &text);
  loop(*l.macro, given.positional[0], l.scope, l.depth + 1);
  out_ = out;
  return heap.str(std::move(text));
}

}  // namespace gimbal::tmpl
