// JSON as a value. Keys keep the order in which they are written.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_fwd.h"  // the name

namespace gimbal {

// The value that a text says; is_discarded() where it says none. Here alone, because the library's parser is
// made anew for every kind of text that it is given.
Json parse_json(std::string_view text);

}  // namespace gimbal

// Compiled in base/json.cpp, once: a fifth of what a file that uses JSON takes otherwise.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
