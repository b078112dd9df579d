// Sizes as people type them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace gimbal {

// The number in such a text: "500M", "1.5GB", "2 G", "6GiB" (units of 1024), or bytes. nullopt: none, or 0.
std::optional<uint64_t> bytes_named(std::string_view text);

}  // namespace gimbal
