// Compiles a schema to rules of a grammar. A schema and all schemas that apply to the same value form a
// conjunction: a set of schemas that the value must satisfy together. Each conjunction becomes a rule, so
// recursive schemas become recursive rules. A choice (anyOf, oneOf) within a conjunction splits it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/interner.h"
#include "grammar/json_rules.h"
#include "grammar/schema_check.h"

namespace gimbal {

class SchemaCompiler {
 public:
  // `root` must outlive this.
  explicit SchemaCompiler(const Json& root) : root_(root), reader_(root), json_(g_) {}

  Result<Grammar> compile();

 private:
  using Id = Grammar::Id;
  // A schema, and the choices already made in it.
  struct Part {
    const Json* schema;
    bool any_of_done = false, one_of_done = false;
  };
  using Conjunction = std::vector<Part>;
  using Schemas = std::vector<const Json*>;

  Id fail(Error e) {
    if (!error_) error_ = std::move(e);
    return g_.never();
  }
  Id fail(const Json& schema, std::string_view what, std::string_view remedy) {
    return fail(reader_.error(schema, what, remedy));
  }

  // Counts states of automata; false, with an error, if they are too many for one schema.
  bool spend(size_t states, const Json& schema);

  // Conjunctions (json_schema.cpp)
  Id rule_of(const Conjunction&);
  Id value_of(const Schemas&);
  bool add(Conjunction& all, const Json& schema, Schemas& above);
  bool add_what_it_names(Conjunction& all, const Json& schema, Schemas& above);
  Id expression(const Conjunction&);
  Id constants(const Json& values, bool list, const Conjunction& all);
  Id split(Conjunction all, size_t at, const Json& list, bool one);
  Id by_type(const Conjunction&);
  Id string(const Conjunction&);
  Id numbers(const Conjunction&, uint8_t types);

  // Whether no value satisfies both; false if unknown (schema_disjoint.cpp). `beside`: what else holds for
  // the value.
  bool disjoint(const Json& a, const Json& b, const Conjunction* beside, int depth);
  bool properties_disjoint(const Conjunction& x, const Conjunction& y, const std::string& name, int depth);
  bool constants_fail(const Conjunction& all, const Json& other);

  // Lists (schema_arrays.cpp)
  struct Items {
    uint32_t min = 0, max = kUnbounded;
    size_t first = 0;  // so many have a schema of their own
  };
  static Items items_of(const Conjunction&);
  static Schemas item_of(const Conjunction&, size_t);
  Id array(const Conjunction&);
  Id plain_array(const Conjunction&, const Items&);
  Id different_items(const Conjunction&, const Items&);
  Id distinct(const std::vector<const Json*>& values, const Items&, const Json& schema);
  Id containing(const Conjunction&, const Items&, const Json& by);
  std::optional<std::vector<const Json*>> finite_values(const Schemas&, int depth);

  // Objects (schema_objects.cpp)
  struct Property {
    std::string name;
    Schemas schemas;  // that its value must fulfil
    bool required = false;
    const Part* named_by = nullptr;  // the last one
  };
  struct Keys {                                                         // that no schema names
    std::vector<std::pair<std::optional<CharMachine>, Schemas>> kinds;  // no machine: any key
  };
  // What all schemas say about the names of keys.
  struct NameRules {
    bool any = true;
    std::optional<std::vector<std::string>> only;  // these alone
    StringRules rules;
  };
  Schemas schemas_of(const Conjunction&, const std::string& name);
  bool matching(const Part&, const std::string& name, Schemas& to);
  std::vector<Property> properties_of(const Conjunction&, const NameRules&);
  NameRules name_rules(const Conjunction&);
  // `needed`: the named ones are too few.
  Keys other_keys(const Conjunction&, const std::vector<Property>&, const NameRules&, bool needed);
  Id object(const Conjunction&);

  static bool has(const Conjunction& all, const Json* schema);
  static uint8_t types_of(const Conjunction& all);
  static uint8_t strict_types_of(const Conjunction& all);
  static NumberBounds bounds_of(const Conjunction& all);
  static StringRules strings_of(const Conjunction& all);
  static bool requires_name(const Conjunction& all, const std::string& name);

  const Json& root_;
  SchemaReader reader_;
  Grammar g_;
  JsonRules json_;
  Interner known_;               // conjunctions, as the numbers of their parts
  std::vector<uint32_t> rules_;  // theirs
  std::optional<Error> error_;
  size_t comparisons_ = 0, compared_with_opposites_ = 0;
  size_t spent_ = 0;
  std::map<std::string, CharMachine> multiples_;  // of the numbers of multipleOf
};

}  // namespace gimbal
