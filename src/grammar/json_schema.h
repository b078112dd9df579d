// JSON schemas as grammars: every text of the grammar is JSON that the schema allows, and there is one unless
// nothing is allowed. Documented in docs/cli.md: what is understood, and which of the allowed texts are not
// written (other orders of keys, other spellings).
#pragma once
#include "grammar/grammar.h"

namespace gimbal {

// Errors: Usage: no JSON, nested too deeply; with the place in the schema: a keyword that is not supported,
// by name; a schema that refers to itself without an end; a `oneOf` whose alternatives cannot be told apart;
// too large.
Result<Grammar> json_schema_grammar(std::string_view schema);
// Any JSON object, as far as the "JSON mode" of APIs promises it.
Grammar json_object_grammar();

}  // namespace gimbal
