// Base64 (RFC 4648, section 4), with padding.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace gimbal {

std::string base64(std::string_view bytes);
// nullopt for a text that is none.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace gimbal
