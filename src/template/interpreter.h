// Evaluates a template's tree. One object renders once. The first error sticks: later evaluations return
// Undefined at once, so callers need no checks in between.
#pragma once
#include <optional>
#include <utility>

#include "template/syntax.h"
#include "template/template.h"

namespace gimbal::tmpl {

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
  const Value* find(std::string_view name) const;  // searches this scope only, not its parents
  void set(std::string_view name, const Value& v);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

class Interpreter;

// A call of a built-in filter, test, method or function.
struct Call {
  Interpreter& in;
  const Value& self;  // the filtered or tested value, or the method's object
  const Value* a;     // one per parameter; Absent if not given
  Arguments& given;   // all of them, for natives with any number of parameters
};

struct Native {
  const char* name;
  const char* parameters;  // "width first blank"; "*": any
  Value (*run)(Call&);
};

const Native* find_filter(std::string_view name);
const Native* find_test(std::string_view name);
const Native* find_function(std::string_view name);
const Native* find_method(const Value& of, std::string_view name);

class Interpreter {
 public:
  Interpreter(const Tree& tree, const RenderOptions& options) : tree_(tree), options_(options) {}
  Result<Rendered> run(const Json& variables);

  Heap heap;
  const RenderOptions& options() const { return options_; }

  Value fail(std::string_view what, const char* reason = "");                       // returns Undefined
  Value stop(std::string_view what) { return fail(what, reason::kTemplateLimit); }  // a RenderLimits error
  bool failed() const { return error_.has_value(); }
  // Counts work; false, with an error, if a limit is reached.
  bool spend(uint64_t steps);

  // ---- values (operators.cpp)
  Value binary(std::string_view sign, const Value&, const Value&);
  bool compares(std::string_view sign, const Value&, const Value&);
  bool contains(const Value& in, const Value& what);
  Value attribute(const Value& of, std::string_view name);
  Value item(const Value& of, const Value& index);
  Value slice(const Value& of, const Value& begin, const Value& end, const Value& step);
  // The items of an iterable. Empty, with an error, for other values.
  std::vector<Value> items(const Value& of);
  Text escaped(const Text&);
  Value concatenate(const std::vector<Value>& parts, bool escapes = false);

  // ---- calls (calls.cpp)
  Value call(const Value& callee, Arguments& arguments);
  Value native(const Native&, const Value& self, Arguments& arguments, const char* what);
  Value apply_filter(std::string_view name, const Value& self, Arguments& arguments);
  bool apply_test(std::string_view name, const Value& self, Arguments& arguments);

 private:
  enum class Flow : uint8_t { Next, Break, Continue };

  // ---- expressions (expressions.cpp)
  Value eval(const Expression* e);
  Value compute(const Expression& e);
  Value lookup(std::string_view name);
  Value compare_chain(const Expression& e);
  Value filtered(const Expression& e, const Value* block);
  Arguments arguments(const std::vector<Argument>& given);

  // ---- statements (statements.cpp)
  Flow body(const std::vector<const Statement*>& statements);
  Flow exec(const Statement& s);
  Flow choose(const Statement& s);
  void loop(const Statement& s, const Value& over, Scope* around, size_t depth);
  void assign(const Expression& target, const Value& v, bool loop_target = false);
  Text captured(const std::vector<const Statement*>& statements);  // in its own scope
  Value captured_str(const std::vector<const Statement*>& statements) {
    return heap.str(captured(statements));
  }
  void print(const Value& v);
  void wrote(size_t bytes);
  Object* macro(const Statement& s);
  Value call_macro(const Object& m, Arguments& arguments);
  Value call_loop(const Object& l, Arguments& arguments);
  Scope* scope(Scope* parent);
  Value from_json(const Json& j, std::string_view key, bool foreign, int depth);

  // Bounds the stack: every recursive function holds one of these.
  struct Level {
    explicit Level(Interpreter& in) : in(in) {
      if (++in.depth_ > kMaxDepth) in.fail("the calls are nested too deeply");
    }
    ~Level() { in.depth_--; }
    Interpreter& in;
  };
  static constexpr int kMaxDepth = 1000;
  static constexpr uint32_t kMaxValueDepth = 100, kMaxValueWeight = 1 << 24;

  const Tree& tree_;
  const RenderOptions& options_;
  std::optional<Error> error_;
  uint64_t steps_ = 0;
  int depth_ = 0, line_ = 1;
  const Statement* at_ = nullptr;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
  size_t written_ = 0;
  size_t closures_ = 0;  // macros created: these keep their scopes
  std::deque<Scope> scopes_;
};

}  // namespace gimbal::tmpl
