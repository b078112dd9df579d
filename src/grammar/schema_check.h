// Reads a schema: checks its keywords, finds the schemas that it refers to and implies, and validates values.
#pragma once
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/decimal.h"
#include "grammar/schema_strings.h"

namespace gimbal {

// Types of values, as bits.
enum SchemaType : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kString = 16,
  kInteger = 32,
  kFraction = 64,
  kNumber = 96,
  kAnyType = 127
};

class SchemaReader {
 public:
  // `root` must outlive this.
  explicit SchemaReader(const Json& root) : root_(root) {}

  // Checks that every keyword is supported. Errors: Usage, with the location and the keyword.
  Status check();
  // The target of `$ref`; nullptr if it does not exist.
  const Json* referred(const Json& schema) const;
  // What `not`, `if` and the dependent keywords say, as a schema without them; nullptr: nothing. The schema
  // lives as long as the reader. Errors: Usage, a `not` whose opposite cannot be written as a schema.
  Result<const Json*> implied(const Json& schema);
  // The schema of all values that this one forbids. Errors: as for `not`.
  Result<const Json*> opposite_schema(const Json& schema);
  const Json& never();                                                        // the schema of no value
  uint32_t number(const Json& schema) const { return numbers_.at(&schema); }  // index within the root, from 0
  const Json& schema(uint32_t number) const { return *schemas_[number].schema; }
  Error error(const Json& schema, std::string_view what, std::string_view remedy) const;

  // Of one schema, without the schemas that it refers to.
  static uint8_t types(const Json& schema);  // the types that it allows
  static uint8_t types_spoken_of(const Json& schema);
  static void read(const Json& schema, NumberBounds&);
  static void read(const Json& schema, StringRules&);
  // The schemas of the first items (`prefixItems`, or `items` as a list), and of the others; nullptr: none.
  static const Json* first_items(const Json& schema);
  static const Json* other_items(const Json& schema);

  // `known`: an enum list or constant that contains the value. Errors: unusable patterns.
  Result<bool> holds(const Json& value, const Json& schema, const Json* known = nullptr, int depth = 0) const;
  // The compiled pattern; valid until the next one. Errors: at `schema`, an unusable pattern.
  Result<const CharMachine*> machine(const std::string& pattern, const Json& schema) const;

 private:
  Status check(const Json& schema, std::string place, int depth);
  Status check_keywords(const Json& schema, const std::string& place, int depth);
  Status check_list(const Json& list, const std::string& place, int depth);
  Status check_map(const Json& map, const std::string& place, int depth);
  Status check_keyword(const Json& schema, const std::string& keyword, const Json& value,
                       const std::string& place, int depth);
  Result<bool> array_holds(const Json& value, const Json& schema, int depth) const;
  Result<bool> object_holds(const Json& value, const Json& schema, int depth) const;
  Result<bool> string_holds(const std::string& text, const Json& schema) const;

  // Of schemas that the reader makes itself (schema_implied.cpp).
  void add(const Json& schema, std::string place);
  Json& adopt(const std::string& place, const Json& origin);
  Status finish(Json& made, Json content);
  Result<Json> opposite(std::string place);
  Result<Json> opposite_of(const Json& schema, const std::string& place);
  Status opposites_of_keyword(const Json& schema, const std::string& keyword, const std::string& place,
                              Json& ways);
  Status opposite_of_values(const Json& schema, const Json& values, Json& ways);

  const Json& root_;
  struct Placed {
    const Json* schema;
    std::string place;
  };
  std::vector<Placed> schemas_;  // all schemas of the root
  std::unordered_map<const Json*, uint32_t> numbers_;
  std::map<std::string, uint32_t, std::less<>> places_;
  bool making_ = false;  // schemas of the reader itself have keywords that no other schema may have
  const Json* never_ = nullptr;
  std::list<Json> made_;  // their addresses stay
  std::unordered_map<const Json*, const Json*> implied_;
  mutable std::list<std::pair<std::string, CharMachine>> patterns_;  // compiled patterns
  mutable size_t work_ = 0;                                          // of holds()
};

// The member of an object, or nullptr.
const Json* field(const Json& schema, const std::string& name);
inline const Json* field(const Json& schema, const char* name) { return field(schema, std::string(name)); }
// Whether two values are equal by JSON: objects in any order of their members, numbers by value.
bool same_value(const Json&, const Json&);
// A name as a part of a place: ~ and / are written ~0 and ~1 (RFC 6901).
std::string escaped_key(std::string);
// A count of a schema, at most kUnbounded.
uint32_t count_of(const Json&);
// The types as a list of names, for a schema.
Json names_of(uint8_t types);

}  // namespace gimbal
