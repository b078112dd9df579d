// JSON values. Keys keep the order of the source text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_fwd.h"  // the name

namespace gimbal {

// Parses a text; the result is_discarded() if the text is no valid JSON. Defined once here because nlohmann's
// parser is a template, instantiated again for each type of input.
Json parse_json(std::string_view text);
// One line; invalid UTF-8 becomes U+FFFD.
std::string dump(const Json&);

}  // namespace gimbal

// Instantiated once, in base/json.cpp: saves a fifth of the compile time of each file that uses JSON.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
