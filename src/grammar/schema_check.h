// Validates values against a schema, for the constants that the schema itself lists.
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
  // `root` must outlive this.
  explicit SchemaReader(const Json& root) : root_(root) {}

  // Checks that every keyword is supported. Errors: Usage, with the location and the keyword.
  Status check();
  // The target of `$ref`; nullptr if it does not exist.
  const Json* referred(const Json& schema) const;
  uint32_t number(const Json& schema) const { return numbers_.at(&schema); }  // index within the root, from 0
  const Json& schema(uint32_t number) const { return *schemas_[number].schema; }
  Error error(const Json& schema, std::string_view what, std::string_view remedy) const;

  // Of one schema, without the schemas that it refers to.
  static uint8_t types(const Json& schema);  // the types that it allows
  static uint8_t types_spoken_of(const Json& schema);
  static void read(const Json& schema, NumberBounds&);
  static void read(const Json& schema, StringRules&);

  // `known`: an enum list or constant that contains the value. Errors: unusable patterns.
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
  std::vector<Placed> schemas_;  // all schemas of the root
  std::unordered_map<const Json*, uint32_t> numbers_;
  std::map<std::string, uint32_t, std::less<>> places_;
  mutable std::vector<std::pair<std::string, CharMachine>> patterns_;  // compiled patterns
  mutable size_t work_ = 0;                                            // of holds()
};

// The member of an object, or nullptr.
const Json* field(const Json& schema, const char* name);

}  // namespace gimbal
