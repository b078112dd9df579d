// Text helpers shared by the APIs: JSON, identifiers, times.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace gimbal::api {

// A JSON string: "\"a\\n\"".
std::string json_text(std::string_view);
// A name from a request, for a message: 'name', escaped and shortened.
std::string quoted_briefly(std::string_view);

// "chatcmpl-" and 24 random letters and digits.
std::string new_id(const char* prefix);
// Unpredictable, from the system; not meant for cryptographic secrets.
uint64_t random_seed();

int64_t unix_time();
// "2026-11-23T03:22:06Z"
std::string iso_time(int64_t unix_time);
// Now, with milliseconds: "2026-11-23T03:22:06.123Z"
std::string time_text();

// Appends "data: ", the data and the empty line that ends an event. `event`: its name, or empty.
void add_event(std::string& out, std::string_view event, std::string_view data);

}  // namespace gimbal::api
