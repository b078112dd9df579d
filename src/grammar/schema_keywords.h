// The keywords of JSON schemas, each with the type of values that it applies to and its own form.
#pragma once
#include <cstdint>
#include <string_view>

#include "grammar/schema_check.h"

namespace gimbal {

struct SchemaKeyword {
  enum Kind : uint8_t {
    Note,  // constrains nothing
    Schema,
    Items,  // a schema, or a list of schemas
    List,
    Map,
    Depends,  // names, each with a list of names or a schema
    Count,
    Bound,
    Factor,
    Flag,
    Text,
    Names,
    Types,
    Values,
    Any,
    Schemas
  } kind;
  uint8_t of;
  const char* name;
};

inline constexpr SchemaKeyword kSchemaKeywords[] = {
    {SchemaKeyword::Note, 0, "title"},
    {SchemaKeyword::Note, 0, "description"},
    {SchemaKeyword::Note, 0, "default"},
    {SchemaKeyword::Note, 0, "example"},
    {SchemaKeyword::Note, 0, "examples"},
    {SchemaKeyword::Note, 0, "$schema"},
    {SchemaKeyword::Note, 0, "$id"},
    {SchemaKeyword::Note, 0, "id"},
    {SchemaKeyword::Note, 0, "$anchor"},
    {SchemaKeyword::Note, 0, "$comment"},
    {SchemaKeyword::Note, 0, "$vocabulary"},
    {SchemaKeyword::Note, 0, "deprecated"},
    {SchemaKeyword::Note, 0, "readOnly"},
    {SchemaKeyword::Note, 0, "writeOnly"},
    {SchemaKeyword::Note, 0, "contentMediaType"},
    {SchemaKeyword::Note, 0, "contentEncoding"},
    {SchemaKeyword::Note, 0, "contentSchema"},
    {SchemaKeyword::Note, 0, "discriminator"},
    {SchemaKeyword::Note, 0, "externalDocs"},
    {SchemaKeyword::Note, 0, "xml"},
    {SchemaKeyword::Map, 0, "$defs"},
    {SchemaKeyword::Map, 0, "definitions"},
    {SchemaKeyword::Text, 0, "$ref"},
    {SchemaKeyword::List, 0, "anyOf"},
    {SchemaKeyword::List, 0, "oneOf"},
    {SchemaKeyword::List, 0, "allOf"},
    {SchemaKeyword::Schema, 0, "not"},
    {SchemaKeyword::Schema, 0, "if"},
    {SchemaKeyword::Schema, 0, "then"},
    {SchemaKeyword::Schema, 0, "else"},
    {SchemaKeyword::Types, 0, "type"},
    {SchemaKeyword::Flag, 0, "nullable"},
    {SchemaKeyword::Values, 0, "enum"},
    {SchemaKeyword::Any, 0, "const"},
    {SchemaKeyword::Map, kObject, "properties"},
    {SchemaKeyword::Map, kObject, "patternProperties"},
    {SchemaKeyword::Names, kObject, "required"},
    {SchemaKeyword::Schema, kObject, "additionalProperties"},
    {SchemaKeyword::Schema, kObject, "propertyNames"},
    {SchemaKeyword::Count, kObject, "minProperties"},
    {SchemaKeyword::Count, kObject, "maxProperties"},
    {SchemaKeyword::Depends, kObject, "dependentRequired"},
    {SchemaKeyword::Depends, kObject, "dependentSchemas"},
    {SchemaKeyword::Depends, kObject, "dependencies"},
    {SchemaKeyword::Items, kArray, "items"},
    {SchemaKeyword::Schemas, kArray, "prefixItems"},
    {SchemaKeyword::Schema, kArray, "additionalItems"},
    {SchemaKeyword::Count, kArray, "minItems"},
    {SchemaKeyword::Count, kArray, "maxItems"},
    {SchemaKeyword::Flag, kArray, "uniqueItems"},
    {SchemaKeyword::Schema, kArray, "contains"},
    {SchemaKeyword::Count, kArray, "minContains"},
    {SchemaKeyword::Count, kArray, "maxContains"},
    {SchemaKeyword::Count, kString, "minLength"},
    {SchemaKeyword::Count, kString, "maxLength"},
    {SchemaKeyword::Text, kString, "pattern"},
    {SchemaKeyword::Text, kString, "format"},
    {SchemaKeyword::Bound, kNumber, "minimum"},
    {SchemaKeyword::Bound, kNumber, "maximum"},
    {SchemaKeyword::Bound, kNumber, "exclusiveMinimum"},
    {SchemaKeyword::Bound, kNumber, "exclusiveMaximum"},
    {SchemaKeyword::Factor, kNumber, "multipleOf"},
};

// Keywords of the schemas that a SchemaReader makes itself: texts that a string is none of, and patterns that
// it does not match.
inline constexpr const char* kOtherTexts = "!enum";
inline constexpr const char* kOtherPatterns = "!pattern";

inline const SchemaKeyword* schema_keyword(std::string_view name) {
  static constexpr SchemaKeyword kVendor{SchemaKeyword::Note, 0, "x-"};
  for (const SchemaKeyword& k : kSchemaKeywords)
    if (name == k.name) return &k;
  return name.starts_with("x-") ? &kVendor : nullptr;
}

}  // namespace gimbal
