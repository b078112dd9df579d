// Converts JSON schemas to grammars: every text of the grammar is JSON that the schema allows, and the
// grammar is empty only if the schema allows nothing. docs/cli.md lists the supported keywords and the
// allowed texts that the grammar omits (other orders of keys, other spellings).
#pragma once
#include "grammar/grammar.h"

namespace gimbal {

// Errors: Usage: invalid JSON, nested too deeply; with the location
// in the schema: an unsupported keyword, by name; infinite recursion;
// a `oneOf` with indistinguishable alternatives; too large.
Result<Grammar> json_schema_grammar(std::string_view schema);
// Any JSON object, as the "JSON mode" of APIs promises.
Grammar json_object_grammar();

}  // namespace gimbal
