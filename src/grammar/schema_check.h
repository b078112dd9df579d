// Whether a value is what a schema describes: for the constants that a schema itself lists.
#pragma once
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
  // `root` outlives it.
  explicit SchemaReader(const Json& root) : root_(root) {}

  // Whether everything in it is understood. Errors: Usage, with the place, naming the keyword.
  Status check();
  // What `$ref` names; nullptr where there is none.
  const Json* referred(const Json& schema) const;
  uint32_t number(const Json& schema) const { return numbers_.at(&schema); }  // of schemas in it, from 0
  const Json& schema(uint32_t number) const { return *schemas_[number].schema; }
  Error error(const Json& schema, std::string_view what, std::string_view remedy) const;

  // Of one schema without those that it refers to.
  static uint8_t types(const Json& schema);  // that it allows
  static uint8_t types_spoken_of(const Json& schema);
  static void read(const Json& schema, NumberBounds&);
  static void read(const Json& schema, StringRules&);

  // `known`: a list (enum) or constant of which the value is. Errors: patterns that cannot be used.
  Result<bool> holds(const Json& value, const Json& schema, const Json* known = nullptr, int depth = 0) const;

 private:
  Status check(const Json& schema, std::string place, int depth);
  Status check_list(const Json& list, const std::string& place, int depth);
  Status check_keyword(const Json& schema, const std::string& keyword, const Json& value,
                       const std::string& place, int depth);
  Result<bool> array_holds(const Json& value, const Json& schema, int depth) const;
  Result<bool> object_holds(const Json& value, const Json& schema, int depth) const;
  Result<bool> string_holds(const std::string& text, const Json& schema) const;

  const Json& root_;
  struct Placed {
    const Json* schema;
    std::string place;
  };
  std::vector<Placed> schemas_;  // all in it
  std::unordered_map<const Json*, uint32_t> numbers_;
  std::map<std::string, uint32_t, std::less<>> places_;
  mutable std::vector<std::pair<std::string, CharMachine>> patterns_;  // that were used
  mutable size_t work_ = 0;                                            // of holds()
};

// The field of an object, or nullptr.
const Json* field(const Json& schema, const char* name);

}  // namespace gimbal
