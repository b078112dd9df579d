// The values of templates: a subset of Python's. A Value is two words and is copied. The data that it
// points to belongs to a Heap and lives as long as the Heap, so values may refer to each other
// freely.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "template/text.h"

namespace gimbal::tmpl {

struct Value;
struct List;
struct Dict;
struct Object;
struct Missing;

// Absent: an argument that was not given; invisible to templates.
enum class Kind : uint8_t { Absent, Undefined, None, Bool, Int, Float, Str, List, Dict, Object };

struct Value {
  Kind kind = Kind::Absent;
  union {
    bool flag;
    int64_t integer = 0;
    double number;
    const Text* text;
    const List* list;
    const Dict* dict;
    Object* object;
    const Missing* missing;  // may be null
  };

  Value() = default;
  explicit Value(Kind k) : kind(k) {}
  static Value of(bool b) {
    Value v(Kind::Bool);
    v.flag = b;
    return v;
  }
  static Value of(int64_t i) {
    Value v(Kind::Int);
    v.integer = i;
    return v;
  }
  static Value of(double d) {
    Value v(Kind::Float);
    v.number = d;
    return v;
  }
  static Value of(const Text* t) {
    Value v(Kind::Str);
    v.text = t;
    return v;
  }
  static Value of(const List* l) {
    Value v(Kind::List);
    v.list = l;
    return v;
  }
  static Value of(const Dict* d) {
    Value v(Kind::Dict);
    v.dict = d;
    return v;
  }
  static Value of(Object* o) {
    Value v(Kind::Object);
    v.object = o;
    return v;
  }

  bool absent() const { return kind == Kind::Absent; }
  bool is(Kind k) const { return kind == k; }
  bool is_integer() const { return kind == Kind::Int || kind == Kind::Bool; }
  bool is_number() const { return is_integer() || kind == Kind::Float; }
  int64_t as_integer() const { return kind == Kind::Bool ? int64_t(flag) : integer; }
  double as_double() const { return kind == Kind::Float ? number : double(as_integer()); }
  std::string_view str() const { return text->bytes; }
};

// All iterables with items by position.
enum class ListKind : uint8_t { List, Tuple, Range, Keys, Values, Items, Generator, Group };

// The size of a list or dict with its contents, shared parts counted each time: the cost of a traversal.
struct Extent {
  uint32_t weight = 1, depth = 1;
};

struct List {
  ListKind kind = ListKind::List;
  std::vector<Value> items;
  std::array<int64_t, 3> range{};  // start, stop, step of a Range
  Extent extent{};
  mutable bool used_up = false;  // a Generator yields its items once
  bool is_sequence() const {
    return kind != ListKind::Generator && kind != ListKind::Keys && kind != ListKind::Values &&
           kind != ListKind::Items;
  }
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order of insertion
  Extent extent{};
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, const Value& value);
};

// Why a value is undefined: `owner` lacks `name`; without an owner, no such variable.
struct Missing {
  std::string name;
  const char* owner;  // a Python type name, or null
};

struct Statement;
struct Scope;

// A value with state, or a callable.
struct Object {
  enum Type : uint8_t { Namespace, Macro, Method, Builtin, Loop, Cycler, Joiner } type;
  std::string_view name;             // of a macro, method or function
  Value self;                        // of a Method: its subject; of a Loop: the iterated List
  Dict fields;                       // of a Namespace
  const Statement* macro = nullptr;  // of a Macro; of a recursive Loop: its statement
  Scope* scope = nullptr;            // the scope of that statement
  size_t index = 0, depth = 0;       // of a Loop; index also of a Cycler and a Joiner
  Value last;                        // arguments of the last loop.changed()
};

// Owns the data of values. The interpreter queries bytes() and largest() to bound total size, depth and
// weight (Interpreter::spend).
class Heap {
 public:
  const Text* text(Text t);
  Value str(std::string_view s, bool foreign = false);
  Value str(Text t) { return Value::of(text(std::move(t))); }
  Value list(std::vector<Value> items, ListKind kind = ListKind::List) {
    return list({kind, std::move(items)});
  }
  Value range(int64_t start, int64_t stop, int64_t step);  // step not 0; the caller bounds its length
  Value dict(Dict d);
  Object* object(Object::Type type, std::string_view name = {});
  Value undefined(std::string_view name, const char* owner);

  size_t bytes() const { return bytes_; }
  const Extent& largest() const { return largest_; }  // of any value so far

 private:
  Value list(List l);
  void count(Extent& of, const Value& part);

  size_t bytes_ = 0;
  Extent largest_;
  std::deque<Text> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Object> objects_;
  std::deque<Missing> missing_;
};

uint32_t weight(const Value&);
bool truth(const Value&);
bool equal(const Value&, const Value&);
// `order`: below 0, 0, above 0. False if Python cannot order the two.
bool compare(const Value&, const Value&, int& order);
bool hashable(const Value&);
const char* type_name(const Value&);      // "str", "list", "NoneType", ...
std::string why_undefined(const Value&);  // "'x' is undefined"

// ---- as text (value_text.cpp)
std::string repr(const Value&);
Text to_text(const Value&);  // Python's str()
std::string float_text(double);
// json.dumps(ensure_ascii=False). `indent`: below 0 for one line. False for a value that JSON cannot
// represent; `bad` is then its type name.
struct JsonStyle {
  int indent = -1;
  std::string_view item = ", ", key = ": ";
  bool sort_keys = false, ascii = false;
};
bool to_json(const Value&, const JsonStyle&, std::string& out, std::string& bad);
bool has_foreign(const Value&);  // any text in it that came from the variables

}  // namespace gimbal::tmpl
