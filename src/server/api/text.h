// Small things that all the APIs write: JSON as text, identifiers, times.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace gimbal::api {

// One line; bytes that are no UTF-8 become U+FFFD.
std::string dump(const Json&);
// The same of a text: "\"a\\n\"".
std::string json_text(std::string_view);
// A name out of a request, for a message: 'name', made harmless and short.
std::string quoted_briefly(std::string_view);

// "chatcmpl-" and 24 random letters and digits.
std::string new_id(const char* prefix);
// Not for secrets of others, but nobody guesses it: from the system.
uint64_t random_seed();

int64_t unix_time();
// "2026-11-23T03:22:06Z"
std::string iso_time(int64_t unix_time);
// Now, with milliseconds: "2026-11-23T03:22:06.123Z"
std::string time_text();

// "data: " + text + the empty line that ends an event; `event`: its name, or empty.
void add_event(std::string& out, std::string_view event, std::string_view data);

std::string base64(std::string_view bytes);

}  // namespace gimbal::api
